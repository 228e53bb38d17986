import { join } from "node:path";
import { type EdgeProcess, startEdge } from "../../cli/launcher/local-edge.ts";

/** An edge that is killed and started again at the same address, on the same or on other data. */
export class ControlledEdge implements AsyncDisposable {
  /** The edge's configuration. A change holds from the next restart on. */
  readonly bindings: Record<string, string>;
  /** Whether no job may be started, because a server must be restored before it has any. */
  isPaused = false;
  readonly #data: string;
  #folder = "first";
  #generation = 1;
  #edge: EdgeProcess;

  /** @param data the folder of the data of all generations */
  static async start(data: string, bindings: Record<string, string>): Promise<ControlledEdge> {
    return new ControlledEdge(data, bindings, await startEdge({ port: 0, data: join(data, "first"), bindings }));
  }

  private constructor(data: string, bindings: Record<string, string>, edge: EdgeProcess) {
    this.#data = data;
    this.bindings = bindings;
    this.#edge = edge;
  }

  get url(): string {
    return this.#edge.url;
  }

  /** The number of starts so far. */
  get generation(): number {
    return this.#generation;
  }

  /** Kills the edge and starts it again, by default on the same data. @param folder the data's name */
  async restart(folder = this.#folder): Promise<void> {
    const { port } = this.#edge;
    this.#folder = folder;
    this.#edge.process.kill("SIGKILL");
    await this.#edge.process.exited;
    this.#edge = await startEdge({ port, data: join(this.#data, folder), bindings: this.bindings });
    this.#generation += 1;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#edge[Symbol.asyncDispose]();
  }
}
