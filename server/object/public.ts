/** The protocol for workers elsewhere, under a path of the edge: who is let in, and to what. */
import { sha256 } from "@noble/hashes/sha2.js";
import { bytesToHex, utf8ToBytes } from "@noble/hashes/utils.js";
import type { Request } from "@resonatehq/sdk";

/** Under which path the edge passes such requests on to the object. */
export const PUBLIC = "/public";

/** What the deployment's variables say of it. */
export interface PublicEnv {
  /** A JSON list of `{"name", "sha256"}`, as `npm run token` prints them. */
  RESONATE_TOKENS?: string;
  /** Another such list: whoever may look at the server itself. */
  OPERATOR_TOKENS?: string;
  RESONATE_NAMESPACE?: string;
}

/** Whether a token is of a list. What is compared are hashes: how far they agree tells nothing of a token. */
export function isLetIn(token: string | undefined, tokens: string | undefined): boolean {
  if (token === undefined || token === "" || !tokens) return false;
  const shown = bytesToHex(sha256(utf8ToBytes(token)));
  const known: unknown = JSON.parse(tokens);
  return Array.isArray(known) && known.some((each) => String(each?.sha256).toLowerCase() === shown);
}

/** Whether all that a request is about lies in the deployment's namespace; a search would tell of what does not. */
export function isWithin(request: Request, { RESONATE_NAMESPACE = "" }: PublicEnv): boolean {
  if (RESONATE_NAMESPACE === "") return true;
  if (request.kind.endsWith(".search")) return false;
  return idsIn(request.data).every((id) => id.startsWith(RESONATE_NAMESPACE));
}

/** Where ids stand in the data of a request, and of those within it. */
const IDS = ["id", "awaited", "awaiter", "promiseId"];
/** In its tags as well: whoever takes a task is given the promises of its branch along. */
const RELATED = ["resonate:branch", "resonate:origin", "resonate:parent"];

const textsIn = (fields: object, names: readonly string[]): string[] =>
  Object.entries(fields).flatMap(([name, value]) => (names.includes(name) && typeof value === "string" ? [value] : []));

function idsIn(data: unknown): string[] {
  if (typeof data !== "object" || data === null) return [];
  const { action, actions, tasks, tags, promiseTags } = data as {
    action?: { data?: unknown };
    actions?: { data?: unknown }[];
    tasks?: [];
    tags?: object;
    promiseTags?: object;
  };
  const own = [...textsIn(data, IDS), ...textsIn({ ...tags, ...promiseTags }, RELATED)];
  const within = [action?.data, ...(actions ?? []).map(({ data }) => data), ...(tasks ?? [])];
  return [...own, ...within.flatMap(idsIn)];
}
