import PQueue from "p-queue";
import * as z from "zod";
import { upstreamDuration } from "./metrics.ts";
import { inSpan } from "./tracing.ts";

/** A period of whole days at a place; `timezone` is an IANA name or `auto`. */
export interface Period {
  latitude: number;
  longitude: number;
  start_date: string;
  end_date: string;
  timezone: string;
}

/**
 * Why a request brought no weather, in words fit for the caller. `refused` will not change by asking again;
 * `unavailable` may; `invalid` is an answer that is not what was asked for. `retryAfter` is in milliseconds.
 */
export class UpstreamError extends Error {
  readonly kind: "refused" | "unavailable" | "invalid";
  readonly retryAfter: number | undefined;

  constructor(kind: UpstreamError["kind"], message: string, retryAfter?: number) {
    super(message);
    this.kind = kind;
    this.retryAfter = retryAfter;
  }
}

const values = z.array(z.number().nullable());
const Series = z.object({ temperature_2m_max: values, temperature_2m_min: values, precipitation_sum: values });

/** The part of an archive answer that is checked; whatever else it holds is passed on as it is. */
const DailyWeather = z.looseObject({
  latitude: z.number(),
  longitude: z.number(),
  timezone: z.string(),
  daily_units: z.record(z.string(), z.string()),
  daily: Series.extend({ time: z.array(z.string()) }),
});
export type DailyWeather = z.infer<typeof DailyWeather>;

const MAX_BYTES = 1_000_000;
const MAX_REASON = 300;

/** A request must end this long before the job's deadline, so that its outcome can still be stored. */
const MARGIN = 1_000;

/** The Open-Meteo archive API. */
export class OpenMeteo {
  readonly #url: string;
  readonly #timeout: number;
  readonly #queue: PQueue;

  /** `timeout`, in milliseconds, is for one request with its body; at most `concurrency` are under way at once. */
  constructor({ url, timeout, concurrency }: { url: string; timeout: number; concurrency: number }) {
    this.#url = url;
    this.#timeout = timeout;
    this.#queue = new PQueue({ concurrency });
  }

  /**
   * One request for the daily weather of a period, ended before `deadline` (milliseconds since the epoch); returns the
   * archive's answer as it was parsed. Requests wait for their turn in order; the wait is not part of the time-out.
   *
   * @throws UpstreamError
   */
  daily(period: Period, deadline: number): Promise<DailyWeather> {
    return this.#queue.add(async () => {
      const limit = Math.min(this.#timeout, deadline - Date.now() - MARGIN);
      if (limit <= 0)
        throw new UpstreamError("unavailable", "the job's time ran out while other requests were under way");
      const { status, retryAfter, text } = await this.#measured(this.#address(period), limit);
      if (status === 200) return parse(text, period);
      const reason = reasonIn(text);
      const message = `Open-Meteo answered ${status}${reason === undefined ? "" : `: ${reason}`}`;
      const passing = status === 408 || status === 429 || status >= 500;
      throw new UpstreamError(passing ? "unavailable" : "refused", message, retryAfter);
    });
  }

  #address(period: Period): URL {
    const url = new URL(this.#url); // may hold an API key among its parameters
    for (const [name, value] of Object.entries(period)) url.searchParams.set(name, String(value));
    url.searchParams.set("daily", Object.keys(Series.shape).join(","));
    return url;
  }

  async #measured(url: URL, limit: number) {
    const stop = upstreamDuration.startTimer({ status: "none" });
    const attributes = { "http.request.method": "GET", "server.address": url.hostname };
    try {
      const get = () => this.#get(url, limit);
      const answer = await inSpan("GET archive", { attributes }, get, ({ status }) => ({
        "http.response.status_code": status,
      }));
      stop({ status: `${Math.floor(answer.status / 100)}xx` });
      return answer;
    } catch (error) {
      stop();
      throw error;
    }
  }

  async #get(url: URL, limit: number) {
    try {
      // A redirect could lead anywhere, so none is followed: it is an answer like any other.
      const response = await fetch(url, { redirect: "manual", signal: AbortSignal.timeout(limit) });
      const retryAfter = parseRetryAfter(response.headers.get("Retry-After"));
      return { status: response.status, retryAfter, text: await readText(response) };
    } catch (error) {
      if (error instanceof UpstreamError) throw error;
      throw new UpstreamError("unavailable", whyNoAnswer(error, limit));
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

async function readText(response: Response): Promise<string> {
  if (!response.body) return "";
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of response.body) {
    size += chunk.byteLength;
    if (size > MAX_BYTES) throw new UpstreamError("invalid", "Open-Meteo's answer is larger than 1 MB");
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

/** The reason an error answer gives: `{"error": true, "reason": "…"}`. */
function reasonIn(text: string): string | undefined {
  const body = z.object({ reason: z.string() }).safeParse(json(text));
  if (!body.success) return undefined;
  return body.data.reason.replace(/\p{Cc}+/gu, " ").slice(0, MAX_REASON);
}

function parse(text: string, { start_date, end_date }: Period): DailyWeather {
  const body = json(text);
  if (body === undefined) throw new UpstreamError("invalid", "Open-Meteo's answer is not JSON");
  const checked = DailyWeather.safeParse(body);
  if (!checked.success) {
    const where = checked.error.issues[0]?.path.join(".") || "the whole of it";
    throw new UpstreamError("invalid", `Open-Meteo's answer is not daily weather (${where})`);
  }
  const { time, ...series } = checked.data.daily;
  const days = daysFrom(start_date, end_date);
  const whole = [time, ...Object.values(series)].every((list) => list.length === days.length);
  if (!whole || days.some((day, i) => day !== time[i])) {
    throw new UpstreamError("invalid", `Open-Meteo's answer does not hold the days ${start_date} to ${end_date}`);
  }
  return body as DailyWeather;
}

function json(text: string): unknown {
  try {
    return JSON.parse(text);
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
