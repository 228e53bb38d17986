import { z } from "zod";

export const Fault = z.discriminatedUnion("kind", [
  /** A late answer. */
  z.object({ kind: z.literal("slow"), ms: z.number().min(0) }),
  /** No answer; `after: "headers"` sends the headers and half of the body first. */
  z.object({ kind: z.literal("hang"), after: z.enum(["nothing", "headers"]).default("nothing") }),
  z.object({ kind: z.literal("refuse") }),
  /** An error status; `retry_after` is in seconds or an HTTP date. */
  z.object({
    kind: z.literal("status"),
    status: z.int().min(300).max(599),
    retry_after: z.string().optional(),
    location: z.string().optional(),
    reason: z.string().optional(),
  }),
  /** Status 200 with a wrong body. */
  z.object({ kind: z.literal("rubbish"), body: z.enum(["html", "truncated", "shape", "days", "huge"]) }),
  /** No values for the last `days` days, as for a month that has just ended. */
  z.object({ kind: z.literal("missing"), days: z.int().min(1) }),
]);
export type Fault = z.infer<typeof Fault>;

/** A fault for the requests of one month (`YYYY-MM`) or all, for `times` of them or until it is cleared. */
export const Rule = z.object({
  fault: Fault,
  month: z
    .string()
    .regex(/^\d{4}-\d{2}$/)
    .optional(),
  times: z.int().min(1).optional(),
});

export interface Requests {
  total: number;
  maxConcurrent: number;
  byQuery: Record<string, number>;
  /** The requests in order of arrival; `at` in milliseconds since the epoch. */
  log: { at: number; query: string; fault?: ActiveRule["fault"]["kind"] }[];
}

/** The delay of a request by {@link Control.hold}. */
interface Hold {
  kind: "hold";
  until: Promise<void>;
}

/** A rule that is in force. */
type ActiveRule = Omit<z.infer<typeof Rule>, "fault"> & { fault: Fault | Hold };

/** The faults to serve, and a record of the requests. */
export class Control {
  #rules: ActiveRule[] = [];
  readonly #log: Requests["log"] = [];
  #running = 0;
  #maxConcurrent = 0;

  /** Adds a rule after the others; the first rule that applies to a request is served. */
  inject(rule: z.input<typeof Rule>): void {
    this.#rules.push(Rule.parse(rule));
  }

  /** Delays the answers to the next `times` requests, for one month (`YYYY-MM`) or any, until the returned function is called. */
  hold(times: number, month?: string): () => void {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#rules.push({ fault: { kind: "hold", until: promise }, times, month });
    return resolve;
  }

  clear(): void {
    this.#rules = [];
  }

  get requests(): Requests {
    const log = structuredClone(this.#log);
    const byQuery: Record<string, number> = {};
    for (const { query } of log) byQuery[query] = (byQuery[query] ?? 0) + 1;
    return { total: log.length, maxConcurrent: this.#maxConcurrent, byQuery, log };
  }

  /** The number of requests for a month, `YYYY-MM`. */
  count(month: string): number {
    return this.#log.filter(({ query }) => monthOf(query) === month).length;
  }

  /** Records a request until the caller calls `done`. */
  begin(query: string): { fault: ActiveRule["fault"] | undefined; done: () => void } {
    const fault = this.#applyRule(monthOf(query));
    this.#log.push({ at: Date.now(), query, ...(fault && { fault: fault.kind }) });
    this.#maxConcurrent = Math.max(this.#maxConcurrent, ++this.#running);
    return { fault, done: () => void this.#running-- };
  }

  #applyRule(month: string | undefined): ActiveRule["fault"] | undefined {
    const rule = this.#rules.find((rule) => rule.month === undefined || rule.month === month);
    if (rule?.times !== undefined && --rule.times === 0) this.#rules.splice(this.#rules.indexOf(rule), 1);
    return rule?.fault;
  }
}

function monthOf(query: string): string | undefined {
  return new URLSearchParams(query).get("start_date")?.slice(0, 7);
}
