import { type EdgeLog, printable } from "./log.ts";

/** The one log line of a request, written when it has been answered and its tool is done. */
export class RequestLog {
  /** The MCP method and the tool. */
  method?: string;
  tool?: string;
  /** The job that was started or found: its promise id without the namespace, as the worker's log names it. */
  job?: string;
  caller?: string;
  /** The number of messages of a batch, each of which has a line of its own. */
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
  member(): RequestLog {
    const line = new RequestLog(this.#log, this.requestId);
    if (this.caller !== undefined) line.caller = this.caller;
    return line;
  }

  /** Delays the line until {@link release}: the response is streamed while the tool is at work. */
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
