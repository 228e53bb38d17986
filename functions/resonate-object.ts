import type { ObjectServer } from "./modules/resonate.js";

/**
 * The account's own Resonate server: promises, tasks and schedules in the SQLite storage of a Durable Object. A Worker's
 * entry exports it beside its default export, and `wrangler.toml` binds it as `RESONATE`.
 *
 * The server is a module of its own, loaded when the object is first used: what the edge evaluates at its start does not
 * grow by it.
 *
 * @example
 * const entry = { ResonateObject, default: createEdge({ name: "my-server", version: "1.0.0", tools: [waitForSite] }) };
 */
export class ResonateObject {
  readonly #server: Promise<ObjectServer>;

  constructor(state: object, env: object) {
    this.#server = import("./modules/resonate.js").then(({ ObjectServer }) => new ObjectServer(state, env));
    this.#server.catch(() => {}); // Each request tells it.
  }

  async fetch(request: Request): Promise<Response> {
    return (await this.#server).fetch(request);
  }

  async alarm(): Promise<void> {
    return (await this.#server).alarm();
  }
}
