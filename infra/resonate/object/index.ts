/**
 * The class that a Worker exports for its Resonate object. The server itself is a module of its own, which is loaded when
 * the object is first used: what the edge evaluates at its start does not grow by it.
 */
import type { ObjectServer } from "./server.ts";
import type { ObjectState } from "./state.ts";

/**
 * The account's own Resonate server: promises, tasks and schedules in the SQLite storage of a Durable Object.
 *
 * @example
 * const entry = { ResonateObject, default: createEdge({ name: "my-server", version: "1.0.0", tools: [waitForSite] }) };
 */
export class ResonateObject {
  readonly #object: Promise<ObjectServer>;

  constructor(state: unknown) {
    this.#object = import("./server.ts").then(({ ObjectServer }) => new ObjectServer(state as ObjectState));
    this.#object.catch(() => {}); // Each request tells it.
  }

  async fetch(request: Request): Promise<Response> {
    return (await this.#object).fetch(request);
  }

  async alarm(): Promise<void> {
    return (await this.#object).alarm();
  }
}
