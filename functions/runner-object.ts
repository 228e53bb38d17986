import type { createRunner } from "./modules/runner.js";

/**
 * Runs jobs inside the account's own Workers, where nobody else takes them: the Resonate object wakes one of these for each
 * task. A Worker's entry exports it beside its default export, and `wrangler.toml` binds it as `RUNNER`. It keeps nothing.
 *
 * @example
 * const entry = { RunnerObject, default: createEdge({ name: "my-server", version: "1.0.0", tools: [waitForSite] }) };
 */
export class RunnerObject {
  readonly #runner: Promise<ReturnType<typeof createRunner>>;

  constructor(_state: object, env: object) {
    this.#runner = import("./modules/runner.js").then(({ createRunner }) => createRunner(env));
    this.#runner.catch(() => {}); // Each request tells it.
  }

  async fetch(request: Request): Promise<Response> {
    return (await this.#runner).fetch(request);
  }
}
