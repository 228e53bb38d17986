/** Decides who may use the protocol from outside of the account, and for which ids. */
import { sha256 } from "@noble/hashes/sha2.js";
import { bytesToHex, utf8ToBytes } from "@noble/hashes/utils.js";
import { mayBeToken } from "../../core/resonate/index.ts";
import type { EngineRequest } from "../engine/engine.ts";

/** The path under which the edge forwards requests from outside of the account to the object. */
export const PUBLIC_PATH = "/public";

export interface PublicEnv {
  /** The tokens of workers: a JSON list of `{"name", "sha256"}`, whose entries `npm run token` prints. */
  RESONATE_TOKENS?: string;
  /** The tokens of operators, in the same form. */
  OPERATOR_TOKENS?: string;
  RESONATE_NAMESPACE?: string;
}

/** Whether a list has a token. It compares hashes, so that its duration reveals nothing about the tokens. */
export function isAllowed(token: string | undefined, tokens: string | undefined): boolean {
  if (!mayBeToken(token) || !tokens) return false;
  const hash = bytesToHex(sha256(utf8ToBytes(token)));
  const entries: unknown = JSON.parse(tokens);
  return Array.isArray(entries) && entries.some((entry) => String(entry?.sha256).toLowerCase() === hash);
}

/** Whether all ids of a request are in the deployment's namespace. Never for a search, which would find other ids. */
export function isWithinNamespace(request: EngineRequest, { RESONATE_NAMESPACE = "" }: PublicEnv): boolean {
  if (RESONATE_NAMESPACE === "") return true;
  if (request.kind.endsWith(".search")) return false;
  return idsIn(request.data).every((id) => id.startsWith(RESONATE_NAMESPACE));
}

/** The fields of a request, and of the requests within it, that hold ids. */
const ID_FIELDS = ["id", "awaited", "awaiter", "promiseId"];
/** The tags that hold ids: a worker that acquires a task receives the promises of its branch. */
const ID_TAGS = ["resonate:branch", "resonate:origin", "resonate:parent"];

const textsIn = (fields: object, names: readonly string[]): string[] =>
  Object.entries(fields).flatMap(([name, value]) => (names.includes(name) && typeof value === "string" ? [value] : []));

function idsIn(data: unknown): string[] {
  if (typeof data !== "object" || data === null) return [];
  const {
    action,
    actions,
    tasks,
    tags,
    promiseTags,
    ids = [],
  } = data as {
    ids?: string[];
    action?: { data?: unknown };
    actions?: { data?: unknown }[];
    tasks?: [];
    tags?: object;
    promiseTags?: object;
  };
  const named = [...ids, ...textsIn(data, ID_FIELDS), ...textsIn({ ...tags, ...promiseTags }, ID_TAGS)];
  const innerRequests = [action?.data, ...(actions ?? []).map(({ data }) => data), ...(tasks ?? [])];
  return [...named, ...innerRequests.flatMap(idsIn)];
}
