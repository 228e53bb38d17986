/**
 * The offers of an edge's wrapped servers besides tools: prompts, resources, completion, log messages. The lists come from
 * snapshots. If two servers use the same name or address, the second server's is changed.
 */

import type { Job } from "../../core/author/job.ts";
import { listJobs } from "../../core/jobs/list-jobs.ts";
import { partsIn } from "../../core/resonate/parts.ts";
import { asPart, isApp, isOurs, withoutOurs } from "../../core/tools/content.ts";
import { ErrorCode, ProtocolError } from "../../core/tools/mcp.ts";
import type { CallContext, Passed, ServerBehind } from "../../core/tools/tool.ts";
import type { CallArgs } from "../call-job.ts";
import { keyOf, type Listed, MAX_LISTED, nameHere, OFFERS, type Snapshot } from "../snapshot.ts";
import type { WrapOptions } from "../wrap-options.ts";
import { type Asked, ask } from "./asking.ts";
import { setLevel } from "./logs.ts";
import { watchResource } from "./watching.ts";

/** How many of a caller's last calls are searched for the address of a resource, and how many are read at once. */
const LOOKED_AT = 50;
const PAGE = 10;

/**
 * Begins the address of a resource or template whose own address another server uses too, or could. The server's name follows.
 */
const OF_SERVER = "wrapped://";

/**
 * The beginning of a template that says whose addresses it means: a scheme of the server's own, or a scheme and an authority. A
 * common scheme alone does not, and neither does the empty authority of `file:///`: several servers have such addresses.
 */
const SAYS_WHOSE = /^(?!(https?|file|ftp|data|urn):)[a-z][\w+.-]*:|^[a-z][\w+.-]*:\/\/[^/]+\//i;

/** Begins an address that only this server may use, and one by which this server names a wrapped server. */
const IS_JOB = /^job:/i;
const IS_OURS = /^(job|wrapped):/i;

/** The part of a template before its first variable. */
const fixedPart = (template: Listed): string => keyOf(template).split("{")[0] ?? "";

type Params = Record<string, unknown>;
type Kind = keyof NonNullable<Snapshot["lists"]>;

interface Server extends Asked, ServerBehind {
  jobs: readonly Job<CallArgs>[];
  snapshot: Snapshot;
  options: Pick<WrapOptions, "prefix" | "apps">;
}

/** An entry of a list, with its name or address on the edge (`here`) and at its server (`there`). */
interface Entry {
  here: Listed;
  there: Listed;
  server: Server;
}

export function serverBehind({
  jobs,
  snapshot,
  options,
}: {
  /** The jobs of its calls. The first one also makes the requests that are not calls. */
  jobs: readonly [Job<CallArgs>, ...Job<CallArgs>[]];
  snapshot: Snapshot;
  options: WrapOptions;
}): ServerBehind {
  const [job] = jobs;
  const server: Server = {
    name: options.name,
    job,
    jobs,
    snapshot,
    options,
    together: (servers) => together(servers as readonly Server[]),
  };
  return server;
}

const appsOf = ({ options }: Server) => ({ apps: options.apps === true });

/** Whether a template says whose addresses it means, and no other server has one for some of the same addresses. */
function isOwnTemplate(template: Listed, server: Server, servers: readonly Server[]): boolean {
  const part = fixedPart(template);
  const isAlike = (other: string) => SAYS_WHOSE.test(other) && (other.startsWith(part) || part.startsWith(other));
  const others = servers.filter((each) => each !== server).flatMap(({ snapshot }) => snapshot.lists.resourceTemplates);
  return SAYS_WHOSE.test(part) && !others.some((each) => isAlike(fixedPart(each)));
}

/** The entries of a list by the name, or address, that they have on the edge. */
function entriesOf(servers: readonly Server[], kind: Kind): Map<string, Entry> {
  const entries = new Map<string, Entry>();
  for (const server of servers) {
    const { name, snapshot, options } = server;
    const own = snapshot.lists[kind];
    for (const there of own.slice(0, MAX_LISTED)) {
      const key = keyOf(there);
      if (options.apps !== true && isApp(key)) continue;
      const [given, second] =
        kind === "prompts" ? [nameHere(key, options.prefix), `${name}_${key}`] : [key, `${OF_SERVER}${name}/${key}`];
      const isOpen = kind === "resourceTemplates" && servers.length > 1 && !isOwnTemplate(there, server, servers);
      const first = isOpen || (kind !== "prompts" && IS_OURS.test(key)) ? second : given;
      const known = entries.get(first);
      // Of two equal entries of one server the first counts.
      if (known?.server === server) continue;
      const here = known ? second : first;
      const field = kind === "prompts" ? "name" : kind === "resources" ? "uri" : "uriTemplate";
      if (entries.has(here)) continue;
      entries.set(here, { here: { ...withoutOurs(there, appsOf(server)), [field]: here }, there, server });
    }
  }
  return entries;
}

const listOf = (entries: ReadonlyMap<string, Entry>): Listed[] => [...entries.values()].map(({ here }) => here);

const refused = (words: string, data?: object) => new ProtocolError(ErrorCode.InvalidParams, words, data);

function together(servers: readonly Server[]): Passed {
  const prompts = entriesOf(servers, "prompts");
  const resources = entriesOf(servers, "resources");
  const templates = entriesOf(servers, "resourceTemplates");
  const [completions, logging, subscribe] = OFFERS.map((offer) =>
    servers.some(({ snapshot }) => snapshot.offers.includes(offer)),
  );

  const promptOf = (name: unknown): Entry => {
    const entry = prompts.get(String(name));
    if (entry) return entry;
    throw refused(`there is no prompt ${JSON.stringify(name)}. The prompts are ${[...prompts.keys()].join(", ")}.`);
  };

  /** The server that a resource is read from, and its address there. The address may be a secret, so no other server may get it. */
  const sourceOf = async (uri: string, context: CallContext): Promise<[server: Server, uri: string]> => {
    const [, named, rest = ""] = /^wrapped:\/\/([^/]+)\/(.*)$/s.exec(uri) ?? [];
    const own = servers.find(({ name }) => name === named);
    if (own) return [own, rest];
    const listed = resources.get(uri);
    if (listed) return [listed.server, uri];
    const [first, ...others] = servers;
    if (first && others.length === 0) return [first, uri];
    const times = await Promise.all(servers.map((server) => lastNamed(server, uri, context)));
    const last = servers[times.indexOf(Math.max(...times.filter((at) => at > 0)))];
    if (last) return [last, uri];
    const fits = ({ there }: Entry) => SAYS_WHOSE.test(fixedPart(there)) && uri.startsWith(fixedPart(there));
    const fitting = new Set([...templates.values()].filter(fits).map(({ server }) => server));
    const [only] = fitting.size === 1 ? fitting : [];
    if (only) return [only, uri];
    throw refused("none of your last results names this resource: call the tool that does", { uri: uri.slice(0, 200) });
  };

  const read = async (params: Params, context: CallContext) => {
    const [server, uri] = await sourceOf(String(params.uri), context);
    const { name, snapshot, options } = server;
    if (!snapshot.resources) throw refused(`${name} has no resources`, { uri });
    if (options.apps !== true && isApp(uri)) throw refused(`${name}: its apps are not shown here`, { uri });
    const { contents, _meta } = await ask(server, "resources/read", { uri }, context);
    if (!Array.isArray(contents)) throw refused(`${name}: it was not read`, { uri });
    const allowed = appsOf(server);
    const shown = (content: unknown) =>
      isOurs(Object(content).uri, allowed)
        ? { uri: String(params.uri), mimeType: "application/json", text: JSON.stringify(content) }
        : withoutOurs(content, allowed);
    return withoutOurs({ contents: contents.map(shown), ...(_meta !== undefined && { _meta }) }, allowed);
  };

  const get = async ({ name, arguments: args }: Params, context: CallContext) => {
    const { server, there } = promptOf(name);
    const params = { name: there.name, ...(args !== undefined && { arguments: args }) };
    const prompt = await ask(server, "prompts/get", params, context);
    if (!Array.isArray(prompt.messages)) throw refused(`${server.name}: its answer is not a prompt`);
    const allowed = appsOf(server);
    const shown = (message: unknown) => {
      const { content } = Object(message);
      if (typeof content !== "object" || content === null) return message;
      const parts = Array.isArray(content) ? content.map((part) => asPart(part, allowed)) : asPart(content, allowed);
      return withoutOurs({ ...Object(message), content: parts }, allowed);
    };
    return withoutOurs({ ...prompt, messages: prompt.messages.map(shown) }, allowed);
  };

  const complete = async ({ ref, argument, context: given }: Params, context: CallContext) => {
    const { type, name, uri } = Object(ref);
    const entry = type === "ref/prompt" ? promptOf(name) : templates.get(String(uri));
    if (!entry) throw refused(`there is no template of resources ${JSON.stringify(uri)}`);
    const { server, there } = entry;
    if (!server.snapshot.offers.includes("completions")) {
      throw new ProtocolError(ErrorCode.MethodNotFound, `${server.name} completes nothing`);
    }
    const own = type === "ref/prompt" ? { type, name: there.name } : { type, uri: there.uriTemplate };
    const params = { ref: own, argument, ...(given !== undefined && { context: given }) };
    const { completion } = await ask(server, "completion/complete", params, context);
    if (!Array.isArray(Object(completion).values)) throw refused(`${server.name}: its answer is not a completion`);
    return { completion };
  };

  const weightOfRead = (uri: unknown) => {
    if (IS_JOB.test(String(uri))) return 0;
    return servers.length === 1 || resources.has(String(uri)) ? 1 : 10;
  };

  return {
    capabilities: {
      ...(prompts.size > 0 && { prompts: {} }),
      ...(completions && { completions: {} }),
      ...(logging && { logging: {} }),
      ...(subscribe && { resources: { subscribe: true } }),
    },
    prompts: listOf(prompts),
    resources: listOf(resources),
    resourceTemplates: listOf(templates),
    methods: {
      "resources/read": read,
      ...(prompts.size > 0 && { "prompts/get": get }),
      ...(completions && { "completion/complete": complete }),
      ...(logging && { "logging/setLevel": setLevel }),
    },
    weightOfRead,
    async watch(uris, context, onUpdated) {
      const watch = async (uri: string) => {
        if (weightOfRead(uri) === 0) return;
        const [server, there] = await sourceOf(uri, context);
        if (!server.snapshot.offers.includes("subscribe")) return;
        await watchResource(server, there, context, () => onUpdated(uri));
      };
      await Promise.allSettled(uris.map(watch));
    },
  };
}

/** How many characters after an occurrence are looked at. */
const LOOK_AHEAD = 20;
/** The end of an address in a text, after marks that belong to the sentence. */
const END = /^[.,:;!?'*)\]]*([^!-~]|["<>\\^`{|}])/;

/** Whether a JSON text has the address in one of its strings, and not only as a part of a longer address. */
function names(json: string, uri: string): boolean {
  const written = JSON.stringify(uri).slice(1, -1);
  for (let at = json.indexOf(written); at >= 0 && written !== ""; at = json.indexOf(written, at + written.length)) {
    const end = at + written.length;
    const isBegun = !/[A-Za-z0-9+.-]/.test(json[at - 1] ?? "") || /\\[bfnrt]/.test(json.slice(at - 2, at));
    if (isBegun && END.test(json.slice(end, end + LOOK_AHEAD))) return true;
  }
  return false;
}

/** When the caller began its last call whose result names the resource, in milliseconds since the epoch; 0 if there is none. */
async function lastNamed({ jobs }: Server, uri: string, { store, signal }: CallContext): Promise<number> {
  const lastOf = async ({ kind }: Job<CallArgs>) => {
    let looked = 0;
    for await (const { job } of listJobs(store, { kind, limit: PAGE }, signal)) {
      const value = job && (job.promise?.value ?? (await store.get(job.name, signal))?.value);
      const text = partsIn(value)?.text ?? JSON.stringify(value ?? null);
      if (job && names(text, uri)) return job.startedAt;
      looked += 1;
      if (looked === LOOKED_AT) break;
    }
    return 0;
  };
  return Math.max(...(await Promise.all(jobs.map(lastOf))));
}
