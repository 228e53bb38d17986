/**
 * Jobs as MCP resources: `job://NAME` reads as `probe_status` describes the job, with its result. Resource reads have no
 * paging, so the address says which part of a large result is wanted. Callers see their own jobs, as everywhere.
 */
import * as z from "zod";
import type { RemoteStore } from "../../core/jobs/index.ts";
import {
  arrange,
  cutToLimit,
  ErrorCode,
  limitOf,
  ProtocolError,
  type Selection,
  uriOf,
  viewOfRange,
} from "../../core/tools/index.ts";
import { printable } from "../http/log.ts";

/** How long a client may cache a job that has ended, in milliseconds. */
const RESULT_CACHE_MS = 60 * 60_000;

const Address = z.object({
  offset: z.coerce.number().int().min(0).optional(),
  fields: z
    .string()
    .transform((text) => text.split(",").filter((field) => field !== ""))
    .pipe(z.array(z.string().max(200)).max(50))
    .optional(),
});

/** @throws {ProtocolError} -32602 for an address that names no job of this caller */
export async function readJob(store: RemoteStore, uri: string, signal?: AbortSignal) {
  const address = parse(uri);
  if (!address) throw new ProtocolError(ErrorCode.InvalidParams, `no resource of this server: ${printable(uri)}`);
  const { name, selection } = address;
  const promise = await store.get(name, signal);
  if (!promise) {
    throw new ProtocolError(ErrorCode.InvalidParams, `Resource not found: ${printable(uri)}`, { uri: printable(uri) });
  }
  const limit = limitOf(promise.job);
  const fullSelection = { ...selection, result: "full" } as const;
  const view = await viewOfRange(store, promise, fullSelection, limit, signal);
  const { views } = arrange([cutToLimit(view, fullSelection, limit)], limit, {
    copies: 1,
    usedCharacters: 2 * uri.length,
  });
  const [cutView] = views;
  const next = cutView?.summary?.next_offset;
  const fields = selection.fields?.map(encodeURIComponent).join(",");
  const more = next && { next: `${uriOf(name)}?offset=${next}${fields ? `&fields=${fields}` : ""}` };
  const text = JSON.stringify({ ...cutView, ...more });
  return {
    contents: [{ uri, mimeType: "application/json", text }],
    // The caller's token, which is not part of the address, decides whose job it is.
    cacheScope: "private" as const,
    ttlMs: promise.state === "pending" ? 0 : RESULT_CACHE_MS,
  };
}

function parse(uri: string): { name: string; selection: Selection } | undefined {
  const [, encoded, query] = /^job:\/\/([^?#]+)(?:\?([^#]*))?$/.exec(uri) ?? [];
  if (encoded === undefined || uri.length > MAX_URI) return undefined;
  const address = Address.safeParse(Object.fromEntries(new URLSearchParams(query)));
  try {
    return address.success ? { name: decodeURIComponent(encoded), selection: address.data } : undefined;
  } catch {
    return undefined;
  }
}

/** The longest address, in characters: longer than that of the longest name with all possible fields. */
const MAX_URI = 20_000;
