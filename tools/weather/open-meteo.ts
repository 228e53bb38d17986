import { LRUCache } from "lru-cache";
import PQueue from "p-queue";
import * as z from "zod";
import { type Metrics, NonRetryableError, RetryLater, type Step, Turns } from "../../core/index.ts";
import { DailyWeather } from "./month.ts";

/** What the family is configured by. */
export const ArchiveEnv = z.object({
  /** The archive API; may hold an API key among its parameters. */
  WEATHER_API_URL: z.url({ protocol: /^https?$/ }).default("https://archive-api.open-meteo.com/v1/archive"),
  /** How many requests all workers may have under way at once. */
  UPSTREAM_CONCURRENCY: z.coerce.number().int().min(1).default(8),
  /** The time one request may take, body included. */
  UPSTREAM_TIMEOUT_SECONDS: z.coerce.number().min(1).max(3600).default(30),
});
export type ArchiveEnv = z.infer<typeof ArchiveEnv>;

/** A period of whole days at a place; `timezone` is an IANA name or `auto`. */
export interface Period {
  latitude: number;
  longitude: number;
  start_date: string;
  end_date: string;
  timezone: string;
}

/** How often an answer may be unusable before it is taken for final: that does not mend itself as an outage does. */
const MAX_UNUSABLE = 4;

/** For how many steps it is known how often that was. One that is forgotten begins anew, as after a crash. */
const STEPS = 10_000;

const MAX_BYTES = 1_000_000;
const MAX_REASON = 300;

/** A request must end this long before the job's deadline, so that its outcome can still be stored. */
const MARGIN = 1_000;

const archives = new WeakMap<ArchiveEnv, OpenMeteo>();

/** The archive of a worker's configuration: one, so that its requests are counted together. */
export function archiveOf(env: ArchiveEnv): OpenMeteo {
  const archive = archives.get(env) ?? new OpenMeteo(env);
  archives.set(env, archive);
  return archive;
}

/** The Open-Meteo archive API. */
class OpenMeteo {
  readonly #url: string;
  readonly #timeout: number;
  readonly #queue: PQueue;
  readonly #turns = new Turns();
  /** How often a step's answer was unusable, by its key: attempts in between may have failed for other reasons. */
  readonly #unusable = new LRUCache<string, number>({ max: STEPS });

  constructor({ WEATHER_API_URL, UPSTREAM_TIMEOUT_SECONDS, UPSTREAM_CONCURRENCY }: ArchiveEnv) {
    this.#url = WEATHER_API_URL;
    this.#timeout = Math.ceil(UPSTREAM_TIMEOUT_SECONDS * 1_000);
    this.#queue = new PQueue({ concurrency: UPSTREAM_CONCURRENCY });
  }

  /**
   * One request for the daily weather of a period, ended before the job's deadline; returns the archive's answer as it was
   * parsed. Callers take turns; the wait is not part of the time-out.
   *
   * @throws {NonRetryableError} for what will not change by asking again
   * @throws {RetryLater} for what may, when the archive says from when on
   * @throws {Error} for what may
   */
  daily(period: Period, step: Step): Promise<DailyWeather> {
    const { deadline, signal, metrics } = step;
    // A backlog of one caller's does not hold up another's request.
    const priority = this.#turns.next(step.owner);
    return this.#queue.add(
      () =>
        this.#turns.begin(priority, async () => {
          const limit = Math.min(this.#timeout, deadline - Date.now() - MARGIN);
          if (limit <= 0) throw new Error("the job's time ran out while other requests were under way");
          const { status, retryAfter, text } = await this.#measured(this.#address(period), limit, signal, metrics);
          if (status === 200) return this.#usable(step, () => parse(text, period));
          const reason = reasonIn(text);
          const message = `Open-Meteo answered ${status}${reason === undefined ? "" : `: ${reason}`}`;
          const passing = status === 408 || status === 429 || status >= 500;
          if (!passing) throw new NonRetryableError(message);
          throw retryAfter === undefined ? new Error(message) : new RetryLater(message, retryAfter);
        }),
      { priority, signal },
    );
  }

  #usable({ idempotencyKey, attempt }: Step, read: () => DailyWeather): DailyWeather {
    try {
      return read();
    } catch (error) {
      const times = (this.#unusable.get(idempotencyKey) ?? 0) + 1;
      this.#unusable.set(idempotencyKey, times);
      if (times < MAX_UNUSABLE) throw error;
      throw new NonRetryableError(`gave up after ${attempt} attempts: ${(error as Error).message}`);
    }
  }

  #address(period: Period): URL {
    const url = new URL(this.#url); // may hold an API key among its parameters
    for (const [name, value] of Object.entries(period)) url.searchParams.set(name, String(value));
    url.searchParams.set("daily", "temperature_2m_max,temperature_2m_min,precipitation_sum");
    return url;
  }

  async #measured(url: URL, limit: number, signal: AbortSignal, metrics: Metrics) {
    const began = performance.now();
    const took = (status: string) =>
      metrics.observe("upstream_request", (performance.now() - began) / 1_000, { status });
    try {
      const answer = await this.#get(url, limit, signal);
      took(`${Math.floor(answer.status / 100)}xx`);
      return answer;
    } catch (error) {
      took("none");
      throw error;
    }
  }

  async #get(url: URL, limit: number, signal: AbortSignal) {
    const timeout = AbortSignal.timeout(limit);
    try {
      // A redirect could lead anywhere, so none is followed: it is an answer like any other.
      const response = await fetch(url, { redirect: "manual", signal: AbortSignal.any([signal, timeout]) });
      const retryAfter = parseRetryAfter(response.headers.get("Retry-After"));
      return { status: response.status, retryAfter, text: await readText(response) };
    } catch (error) {
      throw new Error(whyNoAnswer(error, limit), { cause: error });
    }
  }
}

function whyNoAnswer(error: unknown, limit: number): string {
  if (!(error instanceof Error)) return "Open-Meteo could not be reached";
  if (error.name === "TimeoutError") return `Open-Meteo did not answer within ${Math.round(limit / 1000)} s`;
  const cause = error.cause as { code?: unknown } | undefined;
  return `Open-Meteo could not be reached${typeof cause?.code === "string" ? ` (${cause.code})` : ""}`;
}

/** Milliseconds that a `Retry-After` header asks to wait: a number of seconds or an HTTP date. */
export function parseRetryAfter(header: string | null, now = Date.now()): number | undefined {
  if (header === null) return undefined;
  if (/^\s*\d+\s*$/.test(header)) return Number(header) * 1000;
  const date = Date.parse(header);
  return Number.isNaN(date) ? undefined : Math.max(0, date - now);
}

/** The body; undefined for one that is larger than an answer can be. */
async function readText(response: Response): Promise<string | undefined> {
  if (!response.body) return "";
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of response.body) {
    size += chunk.byteLength;
    if (size > MAX_BYTES) return undefined;
    chunks.push(chunk);
  }
  return new Blob(chunks as Uint8Array<ArrayBuffer>[]).text();
}

/** The reason an error answer gives: `{"error": true, "reason": "…"}`. */
function reasonIn(text: string | undefined): string | undefined {
  const body = z.object({ reason: z.string() }).safeParse(json(text));
  if (!body.success) return undefined;
  return body.data.reason.replace(/\p{Cc}+/gu, " ").slice(0, MAX_REASON);
}

function parse(text: string | undefined, { start_date, end_date }: Period): DailyWeather {
  if (text === undefined) throw new Error("Open-Meteo's answer is larger than 1 MB");
  const body = json(text);
  if (body === undefined) throw new Error("Open-Meteo's answer is not JSON");
  const checked = DailyWeather.safeParse(body);
  if (!checked.success) {
    const where = checked.error.issues[0]?.path.join(".") || "the whole of it";
    throw new Error(`Open-Meteo's answer is not daily weather (${where})`);
  }
  const { time, temperature_2m_max, temperature_2m_min, precipitation_sum } = checked.data.daily;
  const days = daysFrom(start_date, end_date);
  const series = [time, temperature_2m_max, temperature_2m_min, precipitation_sum];
  if (series.some((list) => list.length !== days.length) || days.some((day, i) => day !== time[i])) {
    throw new Error(`Open-Meteo's answer does not hold the days ${start_date} to ${end_date}`);
  }
  return body as DailyWeather;
}

function json(text: string | undefined): unknown {
  try {
    return JSON.parse(text ?? "");
  } catch {
    return undefined;
  }
}

function daysFrom(first: string, last: string): string[] {
  const days: string[] = [];
  for (let day = first; day <= last; day = nextDay(day)) days.push(day);
  return days;
}

function nextDay(day: string): string {
  return new Date(Date.parse(day) + 86_400_000).toISOString().slice(0, 10);
}
