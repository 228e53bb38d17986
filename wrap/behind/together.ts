/**
 * The offers of an edge's wrapped servers besides tools: prompts, resources, completion, log messages. The lists come from
 * snapshots. If two servers use the same name or address, the second server's is changed.
 */
import type { CallContext, Passed, ServerBehind } from "../../core/author/tool.ts";
import type { Job } from "../../core/definitions/job.ts";
import { partsIn } from "../../core/store/parts.ts";
import { ErrorCode, ProtocolError } from "../../core/tools/mcp.ts";
import type { CallArgs } from "../call-job.ts";
import { APP_URI } from "../listing.ts";
import { keyOf, type Listed, MAX_LISTED, nameHere, OFFERS, type Snapshot } from "../snapshot.ts";
import type { WrapOptions } from "../wrap-options.ts";
import { type Asked, ask } from "./asking.ts";
import { setLevel } from "./logs.ts";
import { watchResource } from "./watching.ts";

/** How many of a caller's last calls are searched for the address of a resource, and how many are read at once. */
const LOOKED_AT = 50;
const PAGE = 10;

const METHOD_NOT_FOUND = -32601;

/** Begins the address of a resource or template whose own address another server uses too. The server's name follows. */
const OF_SERVER = "wrapped://";

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

/** The entries of a list by the name, or address, that they have on the edge. */
function entriesOf(servers: readonly Server[], kind: Kind): Map<string, Entry> {
  const entries = new Map<string, Entry>();
  for (const server of servers) {
    const { name, snapshot, options } = server;
    const own = snapshot.lists?.[kind] ?? [];
    for (const there of own.slice(0, MAX_LISTED)) {
      const key = keyOf(there);
      if (options.apps !== true && key.startsWith(APP_URI)) continue;
      const [first, second] =
        kind === "prompts" ? [nameHere(key, options.prefix), `${name}_${key}`] : [key, `${OF_SERVER}${name}/${key}`];
      const known = entries.get(first);
      // Of two equal entries of one server the first counts.
      if (known?.server === server) continue;
      const here = known ? second : first;
      const field = kind === "prompts" ? "name" : kind === "resources" ? "uri" : "uriTemplate";
      if (!entries.has(here)) entries.set(here, { here: { ...there, [field]: here }, there, server });
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
    servers.some(({ snapshot }) => snapshot.offers?.includes(offer)),
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
    const fits = ({ there }: Entry) => {
      const [fixed = ""] = keyOf(there).split("{");
      return fixed !== "" && uri.startsWith(fixed);
    };
    const fitting = new Set([...templates.values()].filter(fits).map(({ server }) => server));
    const [only] = fitting.size === 1 ? fitting : [];
    if (only) return [only, uri];
    throw refused("none of your last results names this resource: call the tool that does", { uri: uri.slice(0, 200) });
  };

  const read = async (params: Params, context: CallContext) => {
    const [server, uri] = await sourceOf(String(params.uri), context);
    const { name, snapshot, options } = server;
    if (!snapshot.resources) throw refused(`${name} has no resources`, { uri });
    if (options.apps !== true && uri.startsWith(APP_URI))
      throw refused(`${name}: its apps are not shown here`, { uri });
    const { contents, _meta } = await ask(server, "resources/read", { uri }, context);
    if (!Array.isArray(contents)) throw refused(`${name}: it was not read`, { uri });
    return { contents, ...(_meta !== undefined && { _meta }) };
  };

  const get = async ({ name, arguments: args }: Params, context: CallContext) => {
    const { server, there } = promptOf(name);
    const params = { name: there.name, ...(args !== undefined && { arguments: args }) };
    const prompt = await ask(server, "prompts/get", params, context);
    if (!Array.isArray(prompt.messages)) throw refused(`${server.name}: its answer is not a prompt`);
    return prompt;
  };

  const complete = async ({ ref, argument, context: given }: Params, context: CallContext) => {
    const { type, name, uri } = Object(ref);
    const entry = type === "ref/prompt" ? promptOf(name) : templates.get(String(uri));
    if (!entry) throw refused(`there is no template of resources ${JSON.stringify(uri)}`);
    const { server, there } = entry;
    if (!server.snapshot.offers?.includes("completions")) {
      throw new ProtocolError(METHOD_NOT_FOUND, `${server.name} completes nothing`);
    }
    const own = type === "ref/prompt" ? { type, name: there.name } : { type, uri: there.uriTemplate };
    const params = { ref: own, argument, ...(given !== undefined && { context: given }) };
    const { completion } = await ask(server, "completion/complete", params, context);
    if (!Array.isArray(Object(completion).values)) throw refused(`${server.name}: its answer is not a completion`);
    return { completion };
  };

  const weightOfRead = (uri: unknown) => {
    if (String(uri).startsWith("job:")) return 0;
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
        if (!server.snapshot.offers?.includes("subscribe")) return;
        await watchResource(server, there, context, () => onUpdated(uri));
      };
      await Promise.allSettled(uris.map(watch));
    },
  };
}

/** When the caller began its last call whose result names the resource, in milliseconds since the epoch; 0 if there is none. */
async function lastNamed({ jobs }: Server, uri: string, { store, signal }: CallContext): Promise<number> {
  const quoted = JSON.stringify(uri);
  const lastOf = async ({ kind }: Job<CallArgs>) => {
    let looked = 0;
    for await (const { job } of store.started({ kind, limit: PAGE }, signal)) {
      const value = job && (job.promise?.value ?? (await store.get(job.name, signal))?.value);
      const text = partsIn(value)?.text ?? JSON.stringify(value ?? null);
      if (job && text.includes(quoted)) return job.startedAt;
      looked += 1;
      if (looked === LOOKED_AT) break;
    }
    return 0;
  };
  return Math.max(...(await Promise.all(jobs.map(lastOf))));
}
