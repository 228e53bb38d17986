import { parseArgs } from "node:util";
import { flag, option } from "../arguments.ts";
import { TOKEN_NAME } from "../static-token.ts";

const LOCATIONS = ["wnam", "enam", "sam", "weur", "eeur", "apac", "apac-ne", "apac-se", "oc", "afr", "me"];
const JURISDICTIONS = ["eu", "us", "fedramp", "fedramp-high"];

const OWN_OPTIONS = {
  caller: option(
    "NAME",
    "create this caller if there is none yet, and show the token even if the output is not a terminal",
  ),
  container: flag("run the jobs in a container of the account, or end with the reason why not"),
  "no-container": flag(`run the jobs in the account's own Workers
(neither: as the last deployment chose; the first time in a container if the account has them and Docker runs)`),
  image: option("IMAGE", "the container's image in a registry that Cloudflare accepts, instead of a build"),
  "container-secrets": option("FILE", "set the secrets in this file for the container"),
  "workers-elsewhere": option(
    "NAME",
    "let workers on your own machines take jobs: creates a token for one, and shows the line to run",
  ),
  operator: option(
    "NAME",
    "create an operator's token: for /operate, and for commands with --url (backup, move and more)",
  ),
  location: option("HINT", "the first time: where the Resonate server runs (wnam, enam, weur, eeur, apac and more)"),
  jurisdiction: option("NAME", "the first time: where its data must stay (eu, us, fedramp)"),
  paid: flag("set limits for requests, which needs the paid plan (default: if the account has Containers)"),
  "other-form": flag("deploy a version that keeps jobs in another form than what is deployed: stop its workers first"),
  "no-wait": flag("do not wait until the edge answers, and do not run the doctor"),
};

/** The options that `--help` lists. */
export const OPTIONS = {
  "dry-run": flag("bundle, print the variables, and upload nothing"),
  ...OWN_OPTIONS,
  remove: flag("remove the deployment with all its data; asks first"),
  yes: flag("with --remove, do not ask"),
  "secrets-file": option("FILE", "set the secrets in this file, as wrangler does"),
};

const oneOf = (list: string[]) => [`one of ${list.join(", ")}`, (value: string) => list.includes(value)] as const;
const VALID_NAME = ["a name", (value: string) => TOKEN_NAME.test(value)] as const;

/** For each option with a value: the words for a valid value, and its test. */
const VALUE_RULES = {
  caller: VALID_NAME,
  "workers-elsewhere": VALID_NAME,
  operator: VALID_NAME,
  location: oneOf(LOCATIONS),
  jurisdiction: oneOf(JURISDICTIONS),
  image: ["an image with its registry and tag", (value: string) => /^[^/]+\.[^/]+\/.+[:@].+$/.test(value)],
  "container-secrets": ["a file", (value: string) => value !== ""],
} as const;

export type DeployOptions = ReturnType<typeof readOptions>;

/** @throws {Error} for a missing or wrong value */
export function readOptions(args: readonly string[]) {
  const { values: flags, tokens } = parseArgs({
    args: [...args],
    options: OWN_OPTIONS,
    strict: false,
    allowPositionals: true,
    tokens: true,
  });
  for (const [name, [expectation, fits]] of Object.entries(VALUE_RULES)) {
    const value = flags[name];
    if (value !== undefined && (typeof value !== "string" || value.startsWith("-") || !fits(value)))
      throw new Error(`--${name} needs ${expectation}.`);
  }
  const ownIndexes = tokens.flatMap((token) => {
    if (token.kind !== "option" || !Object.hasOwn(OWN_OPTIONS, token.name)) return [];
    return token.inlineValue === false ? [token.index, token.index + 1] : [token.index];
  });
  /** Arguments for wrangler. */
  const others = args.filter((_, i) => !ownIndexes.includes(i));
  const values = flags as Partial<Record<keyof typeof VALUE_RULES, string>>;
  if (flags.container && flags["no-container"]) throw new Error("--container or --no-container, not both.");
  const isContainer = Boolean(flags.container) || values.image !== undefined;
  return {
    others,
    values,
    isDry: others.includes("--dry-run"),
    noWait: Boolean(flags["no-wait"]),
    isPaid: Boolean(flags.paid),
    /** Whether this version may keep jobs in another form than the deployed version. */
    isOtherForm: Boolean(flags["other-form"]),
    /** Whether the worker runs in a container; undefined to let the command decide. */
    container: flags["no-container"] ? false : isContainer || undefined,
  };
}
