/** The text variables of the edge's Worker that a deployment keeps for the next one. */
import { readFileSync } from "node:fs";
import { parseEnv } from "node:util";
import { formatMismatch, JOB_FORMAT_VERSION } from "../../core/jobs/index.ts";
import { jsonOf } from "../../core/resonate/index.ts";
import { optionIn } from "../arguments.ts";
import { newToken } from "../static-token.ts";
import type { Bindings } from "./account.ts";
import type { DeployOptions } from "./deploy-options.ts";

export interface NewToken {
  readonly name: string;
  readonly token: string;
}

/** The variable with the number of the form in which a deployment keeps jobs. One that wrangler alone has made lacks it: form 1. */
const JOBS_FORM = "JOBS_FORM";

/**
 * The variable for the form in which this version keeps jobs.
 *
 * @throws {Error} if the deployed version has another form and `isOtherForm` does not confirm that its workers are stopped
 */
export function formOf(edge: Bindings | undefined, { isOtherForm }: DeployOptions): Record<string, string> {
  const deployedForm = edge ? Number(edge.find(({ name }) => name === JOBS_FORM)?.text ?? 1) : JOB_FORMAT_VERSION;
  if (deployedForm !== JOB_FORMAT_VERSION && !isOtherForm) {
    throw new Error(
      `Nothing was deployed: ${formatMismatch("what is deployed", deployedForm, "this version", JOB_FORMAT_VERSION)}. ` +
        "Stop its workers, deploy with --other-form, and start workers of this version: docs/operations.md#mixed-versions.",
    );
  }
  return { [JOBS_FORM]: String(JOB_FORMAT_VERSION) };
}

/**
 * Whether callers send a token that the deployment handed out. A mode that is a secret cannot be read: beside a list of tokens it
 * counts as `bearer`, which the deployment of the first caller stores as a secret.
 */
export function usesTokens(edge: Bindings | undefined): boolean {
  const hasTokens = edge?.some(({ name }) => name === "BEARER_TOKENS");
  const mode = edge?.find(({ name }) => name === "AUTH_MODE")?.text ?? (hasTokens ? "bearer" : undefined);
  return mode === "bearer";
}

/** The secrets that the edge gets from `--secrets-file`, which wrangler reads in the same two forms. */
export function secretsFor({ others }: DeployOptions): Bindings {
  const file = optionIn(others, "--secrets-file");
  if (file === undefined) return [];
  const text = readFileSync(file, "utf8");
  return Object.keys(jsonOf(text) ?? parseEnv(text)).map((name) => ({ name, type: "secret_text" }));
}

/** The options for the location of the account's Resonate server, each with its variable. */
const LOCATION_VARIABLES = [
  ["location", "RESONATE_LOCATION"],
  ["jurisdiction", "RESONATE_JURISDICTION"],
] as const;

/**
 * The variables for the location of the account's Resonate server: the recorded location, or the requested one for a first
 * deployment.
 *
 * @throws {Error} if another location is requested for an existing server
 */
export function locationOf(edge: Bindings | undefined, { values }: DeployOptions): Record<string, string> {
  const location: Record<string, string> = {};
  for (const [option, variable] of LOCATION_VARIABLES) {
    const present = edge?.find(({ name }) => name === variable)?.text;
    const requestValue = values[option];
    if (edge && requestValue !== undefined && requestValue !== present) {
      const now = present === undefined ? `without a ${option} of its own` : `in the ${option} ${present}`;
      throw new Error(
        `It is deployed ${now}, and its jobs cannot be moved: neither location nor jurisdiction can be changed. ` +
          "Deploy another one beside it (--name), or remove this one first (--remove).",
      );
    }
    const value = edge ? present : requestValue;
    if (value !== undefined) location[variable] = value;
  }
  return location;
}

/**
 * Creates a token, and the variables that add its hash to one of the deployment's lists.
 *
 * @throws {Error} with the remedy, if the list is a secret, which cannot be read
 */
export function addToken(
  edge: Bindings | undefined,
  list: string,
  name: string | undefined,
): { newToken?: NewToken; variables: Record<string, string> } {
  if (name === undefined) return { variables: {} };
  const { token, sha256 } = newToken();
  const binding = edge?.find((each) => each.name === list);
  if (binding && binding.text === undefined) {
    throw new Error(`${list} is a secret here: add a token to its list by hand (npm run token, wrangler secret put).`);
  }
  const others: { name: string }[] = JSON.parse(binding?.text || "[]");
  const all = [...others.filter((each) => each.name !== name), { name, sha256 }];
  const isPublic = edge?.some((each) => each.name === "RESONATE_PUBLIC" && each.text === undefined);
  return {
    newToken: { name, token },
    variables: { [list]: JSON.stringify(all), ...(!isPublic && { RESONATE_PUBLIC: "1" }) },
  };
}
