import { TOKEN_NAME } from "../commands/token.ts";

/** What the deploy command is told. */
export interface DeployOptions {
  /** What is wrangler's. */
  readonly others: readonly string[];
  readonly isDry: boolean;
  readonly noWait: boolean;
  /** Whether the account is said to be on the paid plan. */
  readonly isPaid: boolean;
  /** Whether the worker runs in a container; undefined where the command is to decide. */
  readonly container: boolean | undefined;
  readonly values: Readonly<Partial<Record<ValueOption, string>>>;
}

type ValueOption = keyof typeof VALUES;

const LOCATIONS = ["wnam", "enam", "sam", "weur", "eeur", "apac", "apac-ne", "apac-se", "oc", "afr", "me"];
const JURISDICTIONS = ["eu", "us", "fedramp", "fedramp-high"];

const oneOf = (list: string[]) => ({
  says: `one of ${list.join(", ")}`,
  fits: (value: string) => list.includes(value),
});
const A_NAME = { says: "a name", fits: (value: string) => TOKEN_NAME.test(value) };
const A_FILE = { says: "a file", fits: (value: string) => value !== "" };

/** The options with a value, and what that has to be. */
const VALUES = {
  caller: A_NAME,
  "workers-elsewhere": A_NAME,
  operator: A_NAME,
  location: oneOf(LOCATIONS),
  jurisdiction: oneOf(JURISDICTIONS),
  image: {
    says: "an image with its registry and tag",
    fits: (value: string) => /^[^/]+\.[^/]+\/.+[:@].+$/.test(value),
  },
  "container-secrets": A_FILE,
};

/** @throws {Error} for an option without a value, or with one that it cannot have */
export function readOptions(args: readonly string[]): DeployOptions {
  const others: string[] = [];
  const values: Partial<Record<ValueOption, string>> = {};
  const flags = new Set<string>();
  for (let i = 0; i < args.length; i++) {
    const [, name = "", given] = /^--([\w-]+)(?:=(.*))?$/s.exec(args[i] ?? "") ?? [];
    if (Object.hasOwn(VALUES, name)) {
      const option = name as ValueOption;
      const value = given ?? args[++i] ?? "";
      const { says, fits } = VALUES[option];
      if (value.startsWith("-") || !fits(value)) throw new Error(`--${name} needs ${says}.`);
      values[option] = value;
    } else if (["no-wait", "paid", "container", "no-container"].includes(name)) flags.add(name);
    else others.push(args[i] ?? "");
  }
  if (flags.has("container") && flags.has("no-container")) throw new Error("--container or --no-container, not both.");
  const container = flags.has("container") || values.image !== undefined ? true : undefined;
  return {
    others,
    values,
    isDry: others.includes("--dry-run"),
    noWait: flags.has("no-wait"),
    isPaid: flags.has("paid"),
    container: flags.has("no-container") ? false : container,
  };
}
