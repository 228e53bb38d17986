import { z } from "zod";

/** One way for the archive to misbehave. */
export const Fault = z.discriminatedUnion("kind", [
  /** A right answer, late. */
  z.object({ kind: z.literal("slow"), ms: z.number().min(0) }),
  /** No answer at all; `after: "headers"` sends the headers and half of the body first. */
  z.object({ kind: z.literal("hang"), after: z.enum(["nothing", "headers"]).default("nothing") }),
  /** The connection is reset. */
  z.object({ kind: z.literal("refuse") }),
  /** An error status, with `Retry-After` when given (seconds or an HTTP date). */
  z.object({
    kind: z.literal("status"),
    status: z.int().min(300).max(599),
    retry_after: z.string().optional(),
    location: z.string().optional(),
    reason: z.string().optional(),
  }),
  /** Status 200 with a body that is not the answer. */
  z.object({ kind: z.literal("rubbish"), body: z.enum(["html", "truncated", "shape", "days", "huge"]) }),
  /** The last `days` days have no values yet, as for a month that has just ended. */
  z.object({ kind: z.literal("missing"), days: z.int().min(1) }),
]);
export type Fault = z.infer<typeof Fault>;

/** A fault and the requests it applies to: those of one month (`YYYY-MM`) or all, `times` of them or until cleared. */
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
  /** The most requests that were being answered at one moment. */
  maxConcurrent: number;
  /** How often each query string was asked. */
  byQuery: Record<string, number>;
  /** Each request in order of arrival; `at` in milliseconds since the epoch. */
  log: { at: number; query: string; fault?: Served["fault"]["kind"] }[];
}

/** What {@link Control.hold} does to a request. */
interface Held {
  kind: "hold";
  until: Promise<void>;
}

type Served = Omit<z.infer<typeof Rule>, "fault"> & { fault: Fault | Held };

/** Faults waiting to be served and a record of what was asked. */
export class Control {
  #rules: Served[] = [];
  #requests: Requests = { total: 0, maxConcurrent: 0, byQuery: {}, log: [] };
  #running = 0;

  /** Adds a rule behind those already there; the first that applies to a request is served. */
  inject(rule: z.input<typeof Rule>): void {
    this.#rules.push(Rule.parse(rule));
  }

  /** Holds the right answers to the next `times` requests back, until what it returns is called. */
  hold(times: number): () => void {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#rules.push({ fault: { kind: "hold", until: promise }, times });
    return resolve;
  }

  /** Removes every rule. */
  clear(): void {
    this.#rules = [];
  }

  get requests(): Requests {
    return structuredClone(this.#requests);
  }

  /** How many requests there were for a month, `YYYY-MM`. */
  count(month: string): number {
    return this.#requests.log.filter(({ query }) => monthOf(query) === month).length;
  }

  /** Records a request; the caller calls `done` once it is answered or gone. */
  begin(query: string): { fault: Served["fault"] | undefined; done: () => void } {
    const seen = this.#requests;
    seen.total++;
    seen.byQuery[query] = (seen.byQuery[query] ?? 0) + 1;
    const fault = this.#take(monthOf(query));
    seen.log.push({ at: Date.now(), query, ...(fault && { fault: fault.kind }) });
    seen.maxConcurrent = Math.max(seen.maxConcurrent, ++this.#running);
    return { fault, done: () => void this.#running-- };
  }

  #take(month: string | undefined): Served["fault"] | undefined {
    const rule = this.#rules.find((rule) => rule.month === undefined || rule.month === month);
    if (rule?.times !== undefined && --rule.times === 0) this.#rules.splice(this.#rules.indexOf(rule), 1);
    return rule?.fault;
  }
}

function monthOf(query: string): string | undefined {
  return new URLSearchParams(query).get("start_date")?.slice(0, 7);
}
