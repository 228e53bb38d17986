/** A `fetch` that reaches public addresses only, follows no redirect, and has no time limit. */
import { lookup } from "node:dns";
import { BlockList, isIP, type LookupFunction } from "node:net";
import { Agent, type RequestInit as UndiciInit, fetch as undiciFetch } from "undici";
import { outside } from "../core/engine/guard/guard.ts";

const PRIVATE = new BlockList();
for (const [network, bits] of [
  ["0.0.0.0", 8],
  ["10.0.0.0", 8],
  ["100.64.0.0", 10],
  ["127.0.0.0", 8],
  ["169.254.0.0", 16],
  ["172.16.0.0", 12],
  ["192.0.0.0", 24],
  ["192.168.0.0", 16],
  ["198.18.0.0", 15],
  ["224.0.0.0", 3],
] as const) {
  PRIVATE.addSubnet(network, bits, "ipv4");
}
for (const [network, bits] of [
  ["::", 96],
  ["64:ff9b::", 96],
  ["64:ff9b:1::", 48],
  ["fc00::", 7],
  ["fe80::", 10],
  ["fec0::", 10],
  ["ff00::", 8],
  ["2002::", 16],
] as const) {
  PRIVATE.addSubnet(network, bits, "ipv6");
}

/** Whether an address is private, of this machine, or reserved. An IPv4-mapped IPv6 address counts as its IPv4 address. */
export function isPrivate(address: string): boolean {
  const family = isIP(address);
  return family === 0 || PRIVATE.check(address, family === 6 ? "ipv6" : "ipv4");
}

/** The host of a URL without the brackets of an IPv6 address. */
const hostOf = (url: URL): string => url.hostname.replace(/^\[|\]$/g, "");

export class PrivateAddress extends Error {
  override name = "PrivateAddress";
}

const refusal = (host: string) => new PrivateAddress(`${host} is an address of this machine or of a private network`);

/** Resolves a name, and refuses it when any of its addresses is private. The connection uses the addresses checked here. */
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

/** `allowPrivate`: the deployment says that private addresses may be reached. */
export function publicFetch(allowPrivate: boolean): Fetch {
  const agent = new Agent({
    headersTimeout: 0,
    bodyTimeout: 0,
    connect: { timeout: 10_000, ...(!allowPrivate && { lookup: publicLookup }) },
  });
  // A connection serves many calls, and is no part of the durable function whose call uses it.
  return (url, init) => outside(() => send(url, init));

  async function send(url: string | URL, init?: RequestInit): Promise<Response> {
    const target = new URL(url);
    const host = hostOf(target);
    if (!allowPrivate && isIP(host) !== 0 && isPrivate(host)) throw refusal(host);
    const options = { ...init, redirect: "manual", dispatcher: agent } as unknown as UndiciInit;
    return (await undiciFetch(target, options)) as unknown as Response;
  }
}
