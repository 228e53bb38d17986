/** Requests that reach only public addresses and follow no redirect. */
import { lookup } from "node:dns";
import { isIP, type LookupFunction } from "node:net";
import type { Dispatcher, RequestInit as UndiciInit } from "undici";
import { isPublicAddress } from "../../core/author/index.ts";
import { outside } from "../../core/engine/index.ts";

/** Whether an address is private, local to this machine, or reserved. Text that is not an address counts as private. */
export const isPrivate = (address: string): boolean => isIP(address) === 0 || !isPublicAddress(address);

/** The host of a URL without the brackets of an IPv6 address. */
const hostOf = (url: URL): string => url.hostname.replace(/^\[|\]$/g, "");

export class PrivateAddress extends Error {
  override name = "PrivateAddress";
}

const refusal = (host: string) => new PrivateAddress(`${host} is an address of this machine or of a private network`);

/** Resolves a name, and refuses it if any of its addresses is private. The connection uses exactly these addresses. */
const publicLookup: LookupFunction = (hostname, options, callback) => {
  lookup(hostname, { ...options, all: true }, (error, addresses) => {
    if (error) return callback(error, "", 0);
    if (addresses.some(({ address }) => isPrivate(address))) return callback(refusal(hostname), "", 0);
    if (options.all) return callback(null, addresses);
    const [first] = addresses;
    if (first) callback(null, first.address, first.family);
  });
};

export type Fetch = (url: string | URL, init?: RequestInit) => Promise<Response>;

/**
 * `allowPrivate`: the deployment allows private addresses. `silence`: how long a server may send nothing, in milliseconds; a reader
 * may take longer.
 */
export function publicFetch(allowPrivate: boolean, silence = 60_000): Fetch {
  const resolve = resolverOf(allowPrivate, silence);
  return (url, init) =>
    outside(async () => {
      const { target, dispatcher, undici } = await resolve(url);
      const options = { ...init, redirect: "manual", dispatcher } as unknown as UndiciInit;
      return (await undici.fetch(target, options)) as unknown as Response;
    });
}

/**
 * The same without web streams, for callers that do not need them: they take two thirds of the time of a small request. The server
 * of a wrapped call may send nothing for as long as the call may take.
 */
export function publicRequest(allowPrivate: boolean): (url: string | URL, init: RequestOptions) => Promise<Answer> {
  const resolve = resolverOf(allowPrivate, 0);
  return (url, init) =>
    outside(async () => {
      const { target, dispatcher, undici } = await resolve(url);
      return undici.request(target, { ...init, dispatcher });
    });
}

type RequestOptions = Pick<Dispatcher.RequestOptions, "method" | "headers" | "body" | "signal">;
type Answer = Dispatcher.ResponseData;

/**
 * Checks addresses in URLs before a request, and those of names when a connection is opened. Connections are reused. `silence` of
 * 0: no limit.
 */
function resolverOf(allowPrivate: boolean, silence: number) {
  // Loaded at the first call: it would take a fifth of the start of `wrap`, which does not need it to reach a program.
  const load = async () => {
    const undici = await import("undici");
    const connect = { timeout: 10_000, ...(!allowPrivate && { lookup: publicLookup }) };
    // HTTP/1.1 alone, as the `fetch` of Node.
    const options = { allowH2: false, headersTimeout: silence, bodyTimeout: silence, connect };
    return { undici, dispatcher: new undici.Agent(options) };
  };
  let loading: ReturnType<typeof load> | undefined;
  return async (url: string | URL) => {
    const target = new URL(url);
    const host = hostOf(target);
    if (!allowPrivate && isIP(host) !== 0 && isPrivate(host)) throw refusal(host);
    loading ??= load();
    return { target, ...(await loading) };
  };
}
