/**
 * The offers of an edge's wrapped servers besides tools: prompts, resources, completion, log messages. The lists come from
 * snapshots. If two servers use the same name or address, the second server's is changed.
 */

import type { Job } from "../../core/author/index.ts";
import {
  asPart,
  type CallContext,
  ErrorCode,
  isApp,
  isOurs,
  ProtocolError,
  type ProxiedFeatures,
  type UpstreamServer,
  withoutOurs,
} from "../../core/tools/index.ts";
import type { CallArgs } from "../call-job.ts";
import { type ListEntry, OFFERS, type Snapshot } from "../snapshot.ts";
import type { WrapOptions } from "../wrap-options.ts";
import { appsOf, type Entry, entriesOf, namedServer, owns, type Server } from "./entries.ts";
import { lastToName } from "./last-mention.ts";
import { setLevel } from "./logs.ts";
import { request } from "./requests.ts";
import { watchResource } from "./resource-watch.ts";

/** Begins an address that only this server may use. */
const JOB_SCHEME = /^job:/i;

/** The weights of a read at the caller's rate limit; a search for the server that the resource belongs to costs more. */
const READ_WEIGHT = 1;
const SEARCH_WEIGHT = 10;

/** The maximum length of a resource's address in an error. */
const MAX_URI_CHARACTERS = 200;

type Params = Record<string, unknown>;

export function upstreamServer({
  jobs,
  snapshot,
  options,
}: {
  /** The jobs of its calls. The first one also makes the requests that are not calls. */
  jobs: readonly [Job<CallArgs>, ...Job<CallArgs>[]];
  snapshot: Snapshot;
  options: WrapOptions;
}): UpstreamServer {
  const [job] = jobs;
  const server: Server = {
    name: options.name,
    job,
    jobs,
    snapshot,
    options,
    combine: (servers) => combine(servers as readonly Server[]),
  };
  return server;
}

function combine(servers: readonly Server[]): ProxiedFeatures {
  const combinedServers = new CombinedServers(servers);
  const { prompts, resources, templates } = combinedServers;
  const [completions, logging, subscribe] = OFFERS.map((offer) =>
    servers.some(({ snapshot }) => snapshot.offers.includes(offer)),
  );
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
      "resources/read": (params, context) => combinedServers.read(params, context),
      ...(prompts.size > 0 && {
        "prompts/get": (params: Params, context) => combinedServers.getPrompt(params, context),
      }),
      ...(completions && {
        "completion/complete": (params: Params, context) => combinedServers.complete(params, context),
      }),
      ...(logging && { "logging/setLevel": setLevel }),
    },
    weightOfRead: (uri) => combinedServers.weightOfRead(uri),
    watch: (uris, context, onUpdated) => combinedServers.watch(uris, context, onUpdated),
  };
}

const listOf = (entries: ReadonlyMap<string, Entry>): ListEntry[] => [...entries.values()].map(({ onEdge }) => onEdge);

const refusal = (message: string, data?: object) => new ProtocolError(ErrorCode.InvalidParams, message, data);

class CombinedServers {
  readonly #servers: readonly Server[];
  readonly prompts: ReadonlyMap<string, Entry>;
  readonly resources: ReadonlyMap<string, Entry>;
  readonly templates: ReadonlyMap<string, Entry>;

  constructor(servers: readonly Server[]) {
    this.#servers = servers;
    this.prompts = entriesOf(servers, "prompts");
    this.resources = entriesOf(servers, "resources");
    this.templates = entriesOf(servers, "resourceTemplates");
  }

  /** The cost of a read; 0 for an address that is no wrapped server's. */
  weightOfRead(uri: unknown): number {
    if (JOB_SCHEME.test(String(uri))) return 0;
    return this.#servers.length === 1 || this.resources.has(String(uri)) ? READ_WEIGHT : SEARCH_WEIGHT;
  }

  /** Answers `resources/read`. @throws {ProtocolError} */
  async read(params: Params, context: CallContext): Promise<object> {
    const [server, uri] = await this.#sourceOf(String(params.uri), context);
    const { name, snapshot, options } = server;
    if (!snapshot.resources) throw refusal(`${name} has no resources`, { uri });
    if (options.apps !== true && isApp(uri)) throw refusal(`${name}: its apps are not shown here`, { uri });
    const { contents, _meta } = await request(server, "resources/read", { uri }, context);
    if (!Array.isArray(contents)) throw refusal(`${name}: it was not read`, { uri });
    const apps = appsOf(server);
    const contentOnly = (content: unknown) =>
      isOurs(Object(content).uri, apps)
        ? { uri: String(params.uri), mimeType: "application/json", text: JSON.stringify(content) }
        : withoutOurs(content, apps);
    return withoutOurs({ contents: contents.map(contentOnly), ...(_meta !== undefined && { _meta }) }, apps);
  }

  /** Answers `prompts/get`. @throws {ProtocolError} */
  async getPrompt({ name, arguments: args }: Params, context: CallContext): Promise<object> {
    const { server, atServer } = this.#promptOf(name);
    const params = { name: atServer.name, ...(args !== undefined && { arguments: args }) };
    const prompt = await request(server, "prompts/get", params, context);
    if (!Array.isArray(prompt.messages)) throw refusal(`${server.name}: its answer is not a prompt`);
    const apps = appsOf(server);
    const contentOnly = (message: unknown) => {
      const { content } = Object(message);
      if (typeof content !== "object" || content === null) return message;
      const parts = Array.isArray(content) ? content.map((part) => asPart(part, apps)) : asPart(content, apps);
      return withoutOurs({ ...Object(message), content: parts }, apps);
    };
    return withoutOurs({ ...prompt, messages: prompt.messages.map(contentOnly) }, apps);
  }

  /** Answers `completion/complete`. @throws {ProtocolError} */
  async complete({ ref, argument, context: completionContext }: Params, context: CallContext): Promise<object> {
    const { type, name, uri } = Object(ref);
    const entry = type === "ref/prompt" ? this.#promptOf(name) : this.templates.get(String(uri));
    if (!entry) throw refusal(`there is no template of resources ${JSON.stringify(uri)}`);
    const { server, atServer } = entry;
    if (!server.snapshot.offers.includes("completions")) {
      throw new ProtocolError(ErrorCode.MethodNotFound, `${server.name} completes nothing`);
    }
    const ownRef = type === "ref/prompt" ? { type, name: atServer.name } : { type, uri: atServer.uriTemplate };
    const params = {
      ref: ownRef,
      argument,
      ...(completionContext !== undefined && { context: completionContext }),
    };
    const { completion } = await request(server, "completion/complete", params, context);
    if (!Array.isArray(Object(completion).values)) throw refusal(`${server.name}: its answer is not a completion`);
    return { completion };
  }

  /** Calls `onUpdated` for each change of a resource, until the context's `signal` is aborted. */
  async watch(uris: readonly string[], context: CallContext, onUpdated: (uri: string) => void): Promise<void> {
    const watch = async (uri: string) => {
      if (this.weightOfRead(uri) === 0) return;
      const [server, ownUri] = await this.#sourceOf(uri, context);
      if (!server.snapshot.offers.includes("subscribe")) return;
      await watchResource(server, ownUri, context, () => onUpdated(uri));
    };
    await Promise.allSettled(uris.map(watch));
  }

  #promptOf(name: unknown): Entry {
    const entry = this.prompts.get(String(name));
    if (entry) return entry;
    const names = [...this.prompts.keys()].join(", ");
    throw refusal(`there is no prompt ${JSON.stringify(name)}. The prompts are ${names}.`);
  }

  /** The server that a resource is read from, and its address there. The address may be a secret, so no other server may get it. */
  async #sourceOf(uri: string, context: CallContext): Promise<[server: Server, uri: string]> {
    const source = namedServer(this.#servers, uri);
    if (source) return source;
    const entry = this.resources.get(uri);
    if (entry) return [entry.server, uri];
    const [first, ...others] = this.#servers;
    if (first && others.length === 0) return [first, uri];
    const last = await lastToName(this.#servers, uri, context);
    if (last) return [last, uri];
    const owners = new Set(
      [...this.templates.values()].filter((template) => owns(template, uri)).map(({ server }) => server),
    );
    const [owner] = owners.size === 1 ? owners : [];
    if (owner) return [owner, uri];
    const shortUri = uri.slice(0, MAX_URI_CHARACTERS);
    throw refusal("none of your last results names this resource: call the tool that does", { uri: shortUri });
  }
}
