/** The text variables of the edge's Worker that a deployment keeps for the next one. */
import { apart, FORM } from "../../core/jobs/form.ts";
import { newToken } from "../static-token.ts";
import type { Bindings } from "./account.ts";
import type { DeployOptions } from "./deploy-options.ts";

export interface NewToken {
  readonly name: string;
  readonly token: string;
}

/** The variable that notes in which form a deployment keeps jobs. One that lacks it is older, and has 1. */
const JOBS_FORM = "JOBS_FORM";

/**
 * The variable for the form in which this version keeps jobs.
 *
 * @throws {Error} if what is deployed has another one, and nobody has said that its workers are stopped
 */
export function formOf(edge: Bindings | undefined, { isOtherForm }: DeployOptions): Record<string, string> {
  const deployed = edge ? Number(edge.find(({ name }) => name === JOBS_FORM)?.text ?? 1) : FORM;
  if (deployed !== FORM && !isOtherForm) {
    throw new Error(
      `Nothing was deployed: ${apart("what is deployed", deployed, "this version", FORM)}. ` +
        "Stop its workers, deploy with --other-form, and start workers of this version: docs/operations.md#mixed-versions.",
    );
  }
  return { [JOBS_FORM]: String(FORM) };
}

/** The options for the location of the account's Resonate server, and their variables. */
const LOCATION = [
  ["location", "RESONATE_LOCATION"],
  ["jurisdiction", "RESONATE_JURISDICTION"],
] as const;

/**
 * The variables for the location of the account's Resonate server: the recorded one, or for a first deployment the
 * requested one.
 *
 * @throws {Error} if an existing server is requested elsewhere
 */
export function locationOf(edge: Bindings | undefined, { values }: DeployOptions): Record<string, string> {
  const location: Record<string, string> = {};
  for (const [option, variable] of LOCATION) {
    const recorded = edge?.find(({ name }) => name === variable)?.text;
    const wanted = values[option];
    if (edge && wanted !== undefined && wanted !== recorded) {
      const now = recorded === undefined ? `without a ${option} of its own` : `in the ${option} ${recorded}`;
      throw new Error(
        `It is deployed ${now}, and its jobs cannot be moved: neither location nor jurisdiction can be changed. ` +
          "Deploy another one beside it (--name), or remove this one first (--remove).",
      );
    }
    const value = edge ? recorded : wanted;
    if (value !== undefined) location[variable] = value;
  }
  return location;
}

/**
 * Makes a token, and the variables with its hash in one of the deployment's lists.
 *
 * @throws {Error} with the remedy, if the list is a secret, which cannot be read
 */
export function addToken(
  edge: Bindings | undefined,
  list: string,
  name: string | undefined,
): { made?: NewToken; variables: Record<string, string> } {
  if (name === undefined) return { variables: {} };
  const { token, sha256 } = newToken();
  const known = edge?.find((each) => each.name === list);
  if (known && known.text === undefined) {
    throw new Error(`${list} is a secret here: add a token to its list by hand (npm run token, wrangler secret put).`);
  }
  const others: { name: string }[] = JSON.parse(known?.text || "[]");
  const all = [...others.filter((each) => each.name !== name), { name, sha256 }];
  const isPublic = edge?.some((each) => each.name === "RESONATE_PUBLIC" && each.text === undefined);
  return {
    made: { name, token },
    variables: { [list]: JSON.stringify(all), ...(!isPublic && { RESONATE_PUBLIC: "1" }) },
  };
}
