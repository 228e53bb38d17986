import { TOKEN_NAME } from "../static-token.ts";

export interface DeployOptions {
  /** Arguments for wrangler. */
  readonly others: readonly string[];
  readonly isDry: boolean;
  readonly noWait: boolean;
  /** Whether an option says that the account is on the paid plan. */
  readonly isPaid: boolean;
  /** Whether this version may keep jobs in another form than what is deployed. */
  readonly isOtherForm: boolean;
  /** Whether the worker runs in a container; undefined to let the command decide. */
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

/** The options with a value, and the check of that value. */
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

/** @throws {Error} for a missing or wrong value */
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
    } else if (["no-wait", "paid", "container", "no-container", "other-form"].includes(name)) flags.add(name);
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
    isOtherForm: flags.has("other-form"),
    container: flags.has("no-container") ? false : container,
  };
}
