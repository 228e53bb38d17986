import { traceIdIn } from "../../core/author/index.ts";
import type { Middleware, RequestEntry, RequestLog, RequestTrace } from "../../core/tools/index.ts";
import { type EdgeLog, printable } from "./log.ts";

/** A request id of Cloudflare. Ids that clients choose are not adopted. */
const RAY_PATTERN = /^[0-9a-f]{16}(-[A-Z]{3})?$/;

/** Logs each request, except for the frequent ones for the edge's health, and gives the response the request's id. */
export const logRequests = (log: EdgeLog): Middleware =>
  async function logRequest(c, next) {
    const ray = c.req.header("cf-ray");
    const entry = new RequestLogEntry(log, ray !== undefined && RAY_PATTERN.test(ray) ? ray : crypto.randomUUID());
    c.set("requestLog", entry);
    await next();
    if (c.req.path === "/health") return;
    c.res.headers.set("x-request-id", entry.requestId);
    entry.noteStatus(c.res.status);
  };

/** The one log line of a request, written when it has been answered and its tool is done. */
class RequestLogEntry implements RequestLog {
  method?: string;
  tool?: string;
  job?: string;
  caller?: string;
  trace?: RequestTrace | undefined;
  readonly requestId: string;
  readonly #log: EdgeLog;
  readonly #began = Date.now();
  readonly #listeners: ((entry: RequestEntry) => void)[] = [];
  /** The status of a response whose tool is still at work. */
  #status: number | undefined;
  #isDelayed = false;

  constructor(log: EdgeLog, requestId: string) {
    this.#log = log;
    this.requestId = requestId;
  }

  delay(): void {
    this.#isDelayed = true;
  }

  release(): void {
    this.#isDelayed = false;
    if (this.#status !== undefined) this.noteStatus(this.#status);
  }

  onWritten(listener: (entry: RequestEntry) => void): void {
    this.#listeners.push(listener);
  }

  /** Writes the line, unless the tool is still at work. */
  noteStatus(status: number): void {
    this.#status = this.#isDelayed ? status : undefined;
    if (this.#isDelayed || !(this.#log.isInformative || this.#listeners.length > 0)) return;
    const entry: Omit<RequestEntry, "began"> = {
      request_id: this.requestId,
      method: this.method && printable(this.method),
      tool: this.tool && printable(this.tool),
      job: this.job && printable(this.job),
      caller: this.caller,
      status,
    };
    this.#log.info("request", {
      ...entry,
      duration_ms: Date.now() - this.#began,
      trace_id: this.trace && traceIdIn(this.trace.traceparent),
    });
    for (const listener of this.#listeners) listener({ ...entry, began: this.#began });
  }
}
