/** What a deployment remembers of itself: text variables of its Worker, which stay from one deployment to the next. */
import { newToken } from "../commands/token.ts";
import type { Bindings } from "./account.ts";
import type { DeployOptions } from "./deploy-options.ts";

/** A token that was made for a deployment, whose hash that has got. */
export interface Made {
  readonly name: string;
  readonly token: string;
}

/** The options that say where the account's Resonate server is, and the variables that keep it. */
const PLACE = [
  ["location", "RESONATE_LOCATION"],
  ["jurisdiction", "RESONATE_JURISDICTION"],
] as const;

/**
 * Where the account's Resonate server is: as it was, or, for a first deployment, as it is wanted.
 *
 * @throws {Error} when it is there already and wanted elsewhere
 */
export function placeOf(edge: Bindings | undefined, { values }: DeployOptions): Record<string, string> {
  const place: Record<string, string> = {};
  for (const [option, variable] of PLACE) {
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
    if (value !== undefined) place[variable] = value;
  }
  return place;
}

/**
 * A further token in one of the deployment's lists, and the list with it as a variable.
 *
 * @throws {Error} saying what to do, when the list is a secret, which nobody can read
 */
export function addToken(
  edge: Bindings | undefined,
  list: string,
  name: string | undefined,
): { made?: Made; variables: Record<string, string> } {
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
