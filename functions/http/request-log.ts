import { traceIdIn, traceparentIn } from "../../core/author/trace-context.ts";
import type { RequestSpan } from "../../features/trace/export-span.ts";
import { type EdgeLog, printable } from "./log.ts";

/** The one log line of a request, written when it has been answered and its tool is done. */
export class RequestLog {
  /** The MCP method and the tool. */
  method?: string;
  tool?: string;
  /** The job that was started or found: its promise id without the namespace, as the worker's log names it. */
  job?: string;
  caller?: string;
  /** The span by which jobs are started: the request's own where spans are exported, or else the caller's. */
  traceparent: string | undefined;
  #parent: string | undefined;
  readonly requestId: string;
  readonly #export: ((span: RequestSpan) => void) | undefined;
  readonly #log: EdgeLog;
  readonly #began = Date.now();
  #status: number | undefined;
  #isHeld = false;

  constructor(log: EdgeLog, requestId: string, exported?: (span: RequestSpan) => void) {
    this.#log = log;
    this.requestId = requestId;
    this.#export = exported;
  }

  /** Makes the request a part of the caller's trace, if `given` is a valid `traceparent`. */
  trace(given: unknown): void {
    const parent = traceparentIn(given);
    if (!this.#export) this.traceparent = parent ?? this.traceparent;
    else if (parent || !this.traceparent) {
      const own = crypto.randomUUID().replaceAll("-", "");
      this.#parent = parent;
      this.traceparent = `${parent?.slice(0, 36) ?? `00-${own}-`}${own.slice(16)}-${parent?.slice(53) ?? "01"}`;
    }
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
    const { requestId: request_id, caller } = this;
    const [method, tool, job] = [this.method, this.tool, this.job].map((text) => text && printable(text));
    const [began, status, traceparent] = [this.#began, this.#status, this.traceparent];
    const trace_id = traceparent && traceIdIn(traceparent);
    const about = { request_id, method, tool, job, caller, status };
    this.#log.info("request", { ...about, duration_ms: Date.now() - began, trace_id });
    if (traceparent?.endsWith("1")) this.#export?.({ ...about, traceparent, parent: this.#parent, began });
    this.#status = undefined;
  }
}
