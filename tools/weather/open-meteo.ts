import { LRUCache } from "lru-cache";
import * as z from "zod";
import { DAY, NonRetryableError, parseRetryAfter, RetryableError, type Step } from "../../core/index.ts";
import { isoDate } from "./calendar.ts";
import { DailyWeather } from "./month.ts";

export const ArchiveEnv = z.object({
  /** The archive API; may contain an API key among its parameters. */
  WEATHER_API_URL: z.url({ protocol: /^https?$/ }).default("https://archive-api.open-meteo.com/v1/archive"),
  /** How many requests all workers may have open at once. */
  UPSTREAM_CONCURRENCY: z.coerce.number().int().min(1).default(8),
  /** The time for one request, body included. */
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

/** How many unusable answers make a step fail: unlike outages, they do not go away by themselves. */
const MAX_UNUSABLE_ANSWERS = 4;

/** For how many steps unusable answers are counted. The count of a forgotten step starts from 0 again, as after a crash. */
const MAX_COUNTED_STEPS = 10_000;

const MAX_ANSWER_BYTES = 1_000_000;
const MAX_REASON_CHARACTERS = 300;

/** How long before the job's deadline a request must be over, so that its outcome can be stored. */
const DEADLINE_MARGIN_MS = 1_000;

const archives = new WeakMap<ArchiveEnv, OpenMeteo>();

/** The archive client of a worker's configuration. One instance counts the unusable answers of all attempts. */
export function archiveOf(env: ArchiveEnv): OpenMeteo {
  const archive = archives.get(env) ?? new OpenMeteo(env);
  archives.set(env, archive);
  return archive;
}

class OpenMeteo {
  readonly #url: string;
  /** The time for one request, in milliseconds. */
  readonly #timeout: number;
  /** The number of unusable answers by step. Attempts in between may have failed for other reasons. */
  readonly #unusable = new LRUCache<string, number>({ max: MAX_COUNTED_STEPS });

  constructor({ WEATHER_API_URL, UPSTREAM_TIMEOUT_SECONDS }: ArchiveEnv) {
    this.#url = WEATHER_API_URL;
    this.#timeout = Math.ceil(UPSTREAM_TIMEOUT_SECONDS * 1_000);
  }

  /**
   * Requests the daily weather of a period, and returns before the job's deadline. Resolves with the archive's answer.
   *
   * @throws {NonRetryableError} for failures that trying again cannot change
   * @throws {RetryableError} if the archive says when to try again
   * @throws {Error} for other failures
   */
  async daily(period: Period, step: Step): Promise<DailyWeather> {
    const timeout = Math.min(this.#timeout, step.deadline - Date.now() - DEADLINE_MARGIN_MS);
    if (timeout <= 0) throw new Error("the job's time ran out while other requests were under way");
    const { status, headers, text } = await this.#get(this.#address(period), timeout, step);
    if (status === 200) return this.#usable(step, () => parseAnswer(text, period));
    const reason = reasonIn(text);
    const message = `Open-Meteo answered ${status}${reason === undefined ? "" : `: ${reason}`}`;
    const isTemporary = status === 408 || status === 429 || status >= 500;
    if (!isTemporary) throw new NonRetryableError(message);
    const retryAfter = parseRetryAfter(headers.get("Retry-After"));
    throw retryAfter === undefined ? new Error(message) : new RetryableError(message, { retryAfter });
  }

  /** The result of `parse`, which throws for an unusable answer. */
  #usable(step: Step, parse: () => DailyWeather): DailyWeather {
    try {
      return parse();
    } catch (error) {
      const { idempotencyKey, attempt } = step;
      const times = (this.#unusable.get(idempotencyKey) ?? 0) + 1;
      this.#unusable.set(idempotencyKey, times);
      if (times < MAX_UNUSABLE_ANSWERS) throw error;
      throw new NonRetryableError(`gave up after ${attempt} attempts: ${(error as Error).message}`);
    }
  }

  #address(period: Period): URL {
    const url = new URL(this.#url);
    for (const [name, value] of Object.entries(period)) url.searchParams.set(name, String(value));
    url.searchParams.set("daily", "temperature_2m_max,temperature_2m_min,precipitation_sum");
    return url;
  }

  async #get(url: URL, timeout: number, { signal, metrics }: Step) {
    const startedAt = performance.now();
    let statusClass = "none";
    try {
      // A redirect could lead anywhere, so it is not followed, and counts as an answer.
      const response = await fetch(url, {
        redirect: "manual",
        signal: AbortSignal.any([signal, AbortSignal.timeout(timeout)]),
      });
      const { status, headers } = response;
      const text = await readText(response);
      statusClass = `${Math.floor(status / 100)}xx`;
      return { status, headers, text };
    } catch (error) {
      throw new Error(failureOf(error, timeout), { cause: error });
    } finally {
      metrics.observe("upstream_request", (performance.now() - startedAt) / 1_000, { status: statusClass });
    }
  }
}

/** Why there was no answer. */
function failureOf(error: unknown, timeout: number): string {
  if (!(error instanceof Error)) return "Open-Meteo could not be reached";
  if (error.name === "TimeoutError") return `Open-Meteo did not answer within ${Math.round(timeout / 1_000)} s`;
  const cause = error.cause as { code?: unknown } | undefined;
  return `Open-Meteo could not be reached${typeof cause?.code === "string" ? ` (${cause.code})` : ""}`;
}

/** The body; undefined if it is too large. */
async function readText(response: Response): Promise<string | undefined> {
  if (!response.body) return "";
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of response.body) {
    size += chunk.byteLength;
    if (size > MAX_ANSWER_BYTES) return undefined;
    chunks.push(chunk);
  }
  return new Blob(chunks as Uint8Array<ArrayBuffer>[]).text();
}

/** The reason in an error answer: `{"error": true, "reason": "…"}`. */
function reasonIn(text: string | undefined): string | undefined {
  const body = z.object({ reason: z.string() }).safeParse(parseJson(text));
  if (!body.success) return undefined;
  return body.data.reason.replace(/\p{Cc}+/gu, " ").slice(0, MAX_REASON_CHARACTERS);
}

function parseAnswer(text: string | undefined, { start_date, end_date }: Period): DailyWeather {
  if (text === undefined) throw new Error("Open-Meteo's answer is larger than 1 MB");
  const body = parseJson(text);
  if (body === undefined) throw new Error("Open-Meteo's answer is not JSON");
  const weather = DailyWeather.safeParse(body);
  if (!weather.success) {
    const path = weather.error.issues[0]?.path.join(".") || "the whole of it";
    throw new Error(`Open-Meteo's answer is not daily weather (${path})`);
  }
  const { time, temperature_2m_max, temperature_2m_min, precipitation_sum } = weather.data.daily;
  const days = daysFrom(start_date, end_date);
  const series = [time, temperature_2m_max, temperature_2m_min, precipitation_sum];
  if (series.some((list) => list.length !== days.length) || days.some((day, i) => day !== time[i])) {
    throw new Error(`Open-Meteo's answer does not hold the days ${start_date} to ${end_date}`);
  }
  return body as DailyWeather;
}

function parseJson(text: string | undefined): unknown {
  try {
    return JSON.parse(text ?? "");
  } catch {
    return undefined;
  }
}

function daysFrom(first: string, last: string): string[] {
  const days: string[] = [];
  for (let at = Date.parse(first); at <= Date.parse(last); at += DAY) days.push(isoDate(at));
  return days;
}
