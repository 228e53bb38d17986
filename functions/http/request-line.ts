import type { EdgeLog } from "./log.ts";
import { printable } from "./printable.ts";

/** The one line that is logged about a request, once it has been answered and, for a tool, the tool is done. */
export class RequestLine {
  /** The MCP method and the tool. */
  method?: string;
  tool?: string;
  /** The job that was started or found, by its promise id without the namespace: as the worker's lines name it. */
  job?: string;
  caller?: string;
  /** How many messages the request holds, each with a line of its own; undefined for one that is no batch. */
  batch?: number;
  readonly requestId: string;
  readonly #log: EdgeLog;
  readonly #began = Date.now();
  #status: number | undefined;
  #isHeld = false;

  constructor(log: EdgeLog, requestId: string) {
    this.#log = log;
    this.requestId = requestId;
  }

  /** The line of one message of a batch. */
  member(): RequestLine {
    const line = new RequestLine(this.#log, this.requestId);
    if (this.caller !== undefined) line.caller = this.caller;
    return line;
  }

  /** Keeps the line back until {@link release}: the answer is streamed while the tool is at work. */
  hold(): void {
    this.#isHeld = true;
  }

  release(): void {
    this.#isHeld = false;
    this.#write();
  }

  answered(status: number): void {
    this.#status = status;
    this.#write();
  }

  #write(): void {
    if (this.#isHeld || this.#status === undefined) return;
    const { requestId: request_id, batch, caller } = this;
    const [method, tool, job] = [this.method, this.tool, this.job].map((text) => text && printable(text));
    const duration_ms = Date.now() - this.#began;
    this.#log.info("request", { request_id, method, tool, job, batch, caller, status: this.#status, duration_ms });
    this.#status = undefined;
  }
}
