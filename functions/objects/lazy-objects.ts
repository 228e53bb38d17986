/** The classes of a Worker's Durable Objects besides the listener. Their modules are loaded when an object is first used. */

interface Served {
  fetch(request: Request): Promise<Response>;
}
interface Alarmed extends Served {
  alarm(): Promise<void>;
}

/** `durable-mcp-edge/resonate`. */
interface ResonateModule {
  ObjectServer: new (state: never, env: never) => Alarmed;
}

/** A module made of `durable-mcp-edge/runner` and the durable functions. */
interface RunnerModule {
  createRunner(env: object): Served;
}

/** A class that a Worker's entry exports, and `wrangler.toml` binds. */
type ObjectClass<T> = new (state: object, env: object) => T;

/**
 * The account's own Resonate server: promises, tasks and schedules in the SQLite storage of a Durable Object. A Worker's
 * entry exports it beside its default export, and `wrangler.toml` binds it as `RESONATE`. Its module is loaded when the
 * object is first used, so it does not slow the start of the edge.
 *
 * @example
 * const ResonateObject = resonateObject(() => import("durable-mcp-edge/resonate"));
 */
export function resonateObject(load: () => Promise<ResonateModule>): ObjectClass<Alarmed> {
  return class extends lazy(async (state, env) => new (await load()).ObjectServer(state as never, env as never)) {
    async alarm(): Promise<void> {
      return (await this.loaded).alarm();
    }
  };
}

/**
 * Runs jobs inside the account's own Workers when no worker is connected: the Resonate object wakes one of these for each
 * task. A Worker's entry exports it beside its default export, and `wrangler.toml` binds it as `RUNNER`. It has no state.
 *
 * @example
 * const load = async () => ({ createRunner: (env: object) => new RunnerServer(env, [waitForSiteRun]) });
 * const RunnerObject = runnerObject(load); // A project loads a module of its own: `() => import("../modules/runner.js")`.
 */
export function runnerObject(load: () => Promise<RunnerModule>): ObjectClass<Served> {
  return lazy(async (_state, env) => (await load()).createRunner(env));
}

function lazy<T extends Served>(load: (state: object, env: object) => Promise<T>) {
  return class {
    protected readonly loaded: Promise<T>;

    constructor(state: object, env: object) {
      this.loaded = load(state, env);
      this.loaded.catch(() => {}); // Each request reports the failure.
    }

    async fetch(request: Request): Promise<Response> {
      return (await this.loaded).fetch(request);
    }
  };
}
