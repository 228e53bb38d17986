/** The classes of a Worker's Durable Objects besides the listener. Their code is loaded when an object is first used. */
import type { Implementation } from "../../core/author/index.ts";
import type { ObjectCalls } from "../../core/resonate/index.ts";
import { DurableObject } from "./durable-object.ts";

/** What the runtime calls of an object: its one remote method, its requests and its alarms. */
export interface LazyObject extends ObjectCalls {
  fetch(request: Request): Promise<Response>;
  alarm(): Promise<void>;
}

/** A class that a Worker's entry exports, and `wrangler.toml` binds. */
export type LazyObjectClass = new (state: object, env: object) => LazyObject;

/** A class whose objects do what the object does that `load` makes. */
export function lazyObject(load: (state: object, env: object) => Promise<object>): LazyObjectClass {
  return class extends DurableObject {
    readonly #loaded: Promise<object>;

    constructor(state: object, env: object) {
      super(state, env);
      this.#loaded = load(state, env);
      this.#loaded.catch(() => {}); // Each call reports the failure.
    }

    async call(method: string, args: readonly unknown[]): Promise<unknown> {
      return ((await this.#loaded) as LazyObject).call(method, args);
    }

    async fetch(request: Request): Promise<Response> {
      return ((await this.#loaded) as LazyObject).fetch(request);
    }

    async alarm(): Promise<void> {
      return ((await this.#loaded) as LazyObject).alarm();
    }
  };
}

/**
 * What a deployment keeps of one caller, in the SQL storage of a Durable Object: the record of its jobs, its events, subscriptions
 * and schedules. A Worker's entry exports it beside its default export, and `wrangler.toml` binds it as `CALLER`.
 *
 * @example
 * const entry = { CallerObject, default: createEdge({ name: "my-server", version: "1.0.0", tools: [waitForSite] }) };
 */
export class CallerObject extends lazyObject(async (state, env) => {
  const { openObject } = await import("./composition.ts");
  return openObject(state as never, env);
}) {}

/** `durable-mcp-edge/resonate`. */
interface ResonateModule {
  ObjectServer: new (state: never, env: never) => object;
}

/** `durable-mcp-edge/runner`. */
interface RunnerModule {
  RunnerServer: new (env: object, implementations: readonly Implementation[]) => object;
}

/** A module that lists durable functions. */
interface RunsModule {
  runs: readonly Implementation[];
}

/**
 * The account's own Resonate server: promises, tasks and schedules in the SQLite storage of a Durable Object. A Worker's
 * entry exports it beside its default export, and `wrangler.toml` binds it as `RESONATE`.
 *
 * @example
 * const ResonateObject = resonateObject(() => import("durable-mcp-edge/resonate"));
 */
export function resonateObject(load: () => Promise<ResonateModule>): LazyObjectClass {
  return lazyObject(async (state, env) => new (await load()).ObjectServer(state as never, env as never));
}

/**
 * Runs jobs inside the account's own Workers when no worker is connected: the Resonate object wakes one of these for each
 * task. A Worker's entry exports it beside its default export, and `wrangler.toml` binds it as `RUNNER`. It has no state.
 *
 * @example
 * const RunnerObject = runnerObject(() => import("durable-mcp-edge/runner"), async () => ({ runs: [waitForSiteRun] }));
 */
export function runnerObject(load: () => Promise<RunnerModule>, loadRuns: () => Promise<RunsModule>): LazyObjectClass {
  return lazyObject(async (_state, env) => {
    const [{ RunnerServer }, { runs }] = await Promise.all([load(), loadRuns()]);
    return new RunnerServer(env, runs);
  });
}
