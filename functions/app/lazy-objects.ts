/** The classes of a Worker's Durable Objects beside the listener: what they do is loaded when they are first used. */

/** The Resonate server of a deployment, as the module of it exports it: `durable-mcp-edge/resonate`. */
interface ResonateModule {
  ObjectServer: new (
    state: never,
    env: never,
  ) => { fetch(request: Request): Promise<Response>; alarm(): Promise<void> };
}

/** What runs jobs, as the module of it exports it: made of `durable-mcp-edge/runner` and the durable functions. */
interface RunnerModule {
  createRunner(env: object): { fetch(request: Request): Promise<Response> };
}

/** A class that a Worker's entry exports, and `wrangler.toml` binds. */
type ObjectClass<T> = new (state: object, env: object) => T;

/**
 * The account's own Resonate server: promises, tasks and schedules in the SQLite storage of a Durable Object. A Worker's
 * entry exports it beside its default export, and `wrangler.toml` binds it as `RESONATE`. Its module is loaded when the
 * object is first used: what the edge evaluates at its start does not grow by it.
 *
 * @example
 * const ResonateObject = resonateObject(() => import("durable-mcp-edge/resonate"));
 */
export function resonateObject(
  load: () => Promise<ResonateModule>,
): ObjectClass<{ fetch(request: Request): Promise<Response>; alarm(): Promise<void> }> {
  return class {
    readonly #server: Promise<InstanceType<ResonateModule["ObjectServer"]>>;

    constructor(state: object, env: object) {
      this.#server = load().then(({ ObjectServer }) => new ObjectServer(state as never, env as never));
      this.#server.catch(() => {}); // Each request tells it.
    }

    async fetch(request: Request): Promise<Response> {
      return (await this.#server).fetch(request);
    }

    async alarm(): Promise<void> {
      return (await this.#server).alarm();
    }
  };
}

/**
 * Runs jobs inside the account's own Workers, where nobody else takes them: the Resonate object wakes one of these for each
 * task. A Worker's entry exports it beside its default export, and `wrangler.toml` binds it as `RUNNER`. It keeps nothing.
 *
 * @example
 * const load = async () => ({ createRunner: (env: object) => new RunnerServer(env, [waitForSiteRun]) });
 * const RunnerObject = runnerObject(load); // A project loads a module of its own: `() => import("./modules/runner.js")`.
 */
export function runnerObject(
  load: () => Promise<RunnerModule>,
): ObjectClass<{ fetch(request: Request): Promise<Response> }> {
  return class {
    readonly #runner: Promise<ReturnType<RunnerModule["createRunner"]>>;

    constructor(_state: object, env: object) {
      this.#runner = load().then(({ createRunner }) => createRunner(env));
      this.#runner.catch(() => {}); // Each request tells it.
    }

    async fetch(request: Request): Promise<Response> {
      return (await this.#runner).fetch(request);
    }
  };
}
