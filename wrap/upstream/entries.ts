/** The entries of an edge's lists of prompts, resources and templates, by the names or addresses that they have on the edge. */

import type { Job } from "../../core/author/index.ts";
import { isApp, type UpstreamServer, withoutOurs } from "../../core/tools/index.ts";
import type { CallArgs } from "../call-job.ts";
import { keyOf, type ListEntry, MAX_LIST_ENTRIES, prefixedName, type Snapshot } from "../snapshot.ts";
import type { WrapOptions } from "../wrap-options.ts";
import type { RequestTarget } from "./requests.ts";

/** A wrapped server as the edge knows it. */
export interface Server extends RequestTarget, UpstreamServer {
  jobs: readonly Job<CallArgs>[];
  snapshot: Snapshot;
  options: Pick<WrapOptions, "prefix" | "apps">;
}

/** An entry of a list, with its name or address on the edge and at its server. */
export interface Entry {
  onEdge: ListEntry;
  atServer: ListEntry;
  server: Server;
}

/**
 * Begins the address of a resource or template whose own address another server uses too, or could. The server's name follows.
 */
const SERVER_SCHEME = "wrapped://";

/** The server's name and its own address, in an address that begins with {@link SERVER_SCHEME}. */
const SERVER_ADDRESS = /^wrapped:\/\/([^/]+)\/(.*)$/s;

/** Begins an address that only this server may use, or one by which this server names a wrapped server. */
const RESERVED_SCHEME = /^(job|wrapped):/i;

/**
 * The beginning of a template that says whose addresses it means: a scheme of the server's own, or a scheme and an authority. A
 * common scheme alone does not, and neither does the empty authority of `file:///`: several servers have such addresses.
 */
const OWNED_PREFIX = /^(?!(https?|file|ftp|data|urn):)[a-z][\w+.-]*:|^[a-z][\w+.-]*:\/\/[^/]+\//i;

/** The address on the edge that names the server. */
const serverAddress = ({ name }: Server, address: string): string => `${SERVER_SCHEME}${name}/${address}`;

/** The server that an address names, and its own address there; undefined if the address names none. */
export function namedServer(servers: readonly Server[], uri: string): [server: Server, uri: string] | undefined {
  const [, serverName, address = ""] = SERVER_ADDRESS.exec(uri) ?? [];
  const server = servers.find(({ name }) => name === serverName);
  return server && [server, address];
}

/** The part of a template before its first variable. */
const fixedPart = (template: ListEntry): string => keyOf(template).split("{")[0] ?? "";

/** Whether a template says whose addresses it means, and the address is one of them. */
export function owns({ atServer }: Entry, uri: string): boolean {
  const part = fixedPart(atServer);
  return OWNED_PREFIX.test(part) && uri.startsWith(part);
}

/** Whether a template says whose addresses it means, and no other server has one for some of the same addresses. */
function isOwnTemplate(template: ListEntry, server: Server, servers: readonly Server[]): boolean {
  const part = fixedPart(template);
  const overlaps = (other: string) => OWNED_PREFIX.test(other) && (other.startsWith(part) || part.startsWith(other));
  const otherTemplates = servers
    .filter((other) => other !== server)
    .flatMap(({ snapshot }) => snapshot.lists.resourceTemplates);
  return OWNED_PREFIX.test(part) && !otherTemplates.some((other) => overlaps(fixedPart(other)));
}

const KEY_FIELDS = { prompts: "name", resources: "uri", resourceTemplates: "uriTemplate" } as const;
type Kind = keyof typeof KEY_FIELDS;

/** The keys that an entry may have on the edge, best first. The second one names its server. */
function keysOnEdge(
  kind: Kind,
  entry: ListEntry,
  server: Server,
  servers: readonly Server[],
): [first: string, second: string] {
  const key = keyOf(entry);
  if (kind === "prompts") return [prefixedName(key, server.options.prefix), `${server.name}_${key}`];
  const address = serverAddress(server, key);
  const isShared = kind === "resourceTemplates" && servers.length > 1 && !isOwnTemplate(entry, server, servers);
  return [isShared || RESERVED_SCHEME.test(key) ? address : key, address];
}

/** The entries of a list by the name, or address, that they have on the edge. */
export function entriesOf(servers: readonly Server[], kind: Kind): Map<string, Entry> {
  const entries = new Map<string, Entry>();
  for (const server of servers) {
    const { snapshot, options } = server;
    for (const entry of snapshot.lists[kind].slice(0, MAX_LIST_ENTRIES)) {
      if (options.apps !== true && isApp(keyOf(entry))) continue;
      const [first, second] = keysOnEdge(kind, entry, server, servers);
      const namesake = entries.get(first);
      // Of two equal entries of one server the first counts.
      if (namesake?.server === server) continue;
      const key = namesake ? second : first;
      if (entries.has(key)) continue;
      const onEdge = { ...withoutOurs(entry, appsOf(server)), [KEY_FIELDS[kind]]: key };
      entries.set(key, { onEdge, atServer: entry, server });
    }
  }
  return entries;
}

/** Whether a server's own apps are shown, as the functions of `core/tools/content.ts` accept it. */
export const appsOf = ({ options }: Server) => ({ apps: options.apps === true });
