import { jsonOf } from "../../core/resonate/index.ts";

/** The result of one check. */
export interface Finding {
  check: string;
  status: "ok" | "warning" | "failed" | "skipped";
  detail: string;
  /** The remedy for a fault. */
  fix?: string;
}

/** Creates the findings of one check. */
export const findings = (check: string) => ({
  ok: (detail: string): Finding => ({ check, status: "ok", detail }),
  skipped: (detail: string): Finding => ({ check, status: "skipped", detail }),
  warning: (detail: string, fix: string): Finding => ({ check, status: "warning", detail, fix }),
  failed: (detail: string, fix: string): Finding => ({ check, status: "failed", detail, fix }),
});

/** An HTTP answer, or the reason for its absence. `text` is cut at 1000 characters; `skew` is in milliseconds. */
export type HttpAnswer =
  | { status: number; headers: Headers; text: string; skew: number | undefined }
  | { status: undefined; reason: string };

const REQUEST_TIMEOUT_MS = 10_000;

/** Sends a request and reads the answer; never rejects. Does not follow redirects. */
export function ask(url: string | URL, init: RequestInit = {}): Promise<HttpAnswer> {
  return answerOf(() => fetch(url, { redirect: "manual", signal: AbortSignal.timeout(REQUEST_TIMEOUT_MS), ...init }));
}

/** Reads the answer to `request`; never rejects. */
export async function answerOf(request: () => Promise<Response>): Promise<HttpAnswer> {
  const sentAt = Date.now();
  try {
    const response = await request();
    const receivedAt = Date.now();
    const text = (await response.text()).slice(0, 1_000);
    const date = Date.parse(response.headers.get("Date") ?? "");
    // The header has whole seconds: on average, the true time is half a second later.
    const skew = Number.isNaN(date) ? undefined : date + 500 - (sentAt + receivedAt) / 2;
    return { status: response.status, headers: response.headers, text, skew };
  } catch (error) {
    return { status: undefined, reason: whyNot(error) };
  }
}

/** The reason for a failed request, in a few words. */
export function whyNot(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (error.name === "TimeoutError") return `no answer within ${REQUEST_TIMEOUT_MS / 1_000} s`;
  const { cause } = error;
  if (!(cause instanceof Error)) return error.message;
  return "code" in cause && typeof cause.code === "string" ? cause.code : cause.message;
}

/** The field `name` of a JSON object, or undefined. */
export const field = (text: string, name: string): unknown => (jsonOf(text) as Record<string, unknown> | null)?.[name];

/** The largest accepted difference of two clocks: tokens are checked with a tolerance of a minute. */
const MAX_CLOCK_SKEW_MS = 30_000;

/** Checks that the clock of the answering machine agrees with this machine's clock. */
export function checkClock(check: string, answer: HttpAnswer): Finding {
  const { ok, skipped, failed } = findings(check);
  if (answer.status === undefined || answer.skew === undefined) return skipped("the answer has no date");
  const seconds = Math.round(answer.skew / 1_000);
  if (Math.abs(answer.skew) <= MAX_CLOCK_SKEW_MS) return ok("agrees with this machine's");
  return failed(
    `${Math.abs(seconds)} s ${seconds > 0 ? "ahead of" : "behind"} this machine's`,
    "Set the clock that is wrong, by NTP: with clocks apart, valid tokens are refused and timers fire early or late.",
  );
}
