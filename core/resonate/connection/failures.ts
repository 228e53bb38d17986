/** How requests to the Resonate server fail. */
import type { PromiseRecord } from "./protocol.ts";

interface Failure {
  cause?: unknown;
  /** The status of the answer, if any. */
  status?: number | undefined;
  isTemporary?: boolean;
}

/** The server could not be reached or could not answer. Repeating the call is safe: every operation here is idempotent. */
export class ResonateUnavailable extends Error {
  /** Compares the name, because code that the edge loads later has its own copy of these classes. */
  static override [Symbol.hasInstance](error: unknown): error is ResonateUnavailable {
    return Object(error).name === "ResonateUnavailable" || error instanceof ResonateRefused;
  }

  override name = "ResonateUnavailable";
  /** The status of the server's answer; undefined without an answer. */
  readonly status: number | undefined;
  /** Whether the same call may well succeed a moment later. */
  readonly isTemporary: boolean;

  constructor(message: string, { cause, status, isTemporary = false }: Failure = {}) {
    super(message, { cause });
    this.status = status;
    this.isTemporary = isTemporary;
  }
}

/** The server refuses the request for good: because of its token (401, 403), its form (400) or its size (413). */
export class ResonateRefused extends ResonateUnavailable {
  static override [Symbol.hasInstance](error: unknown): error is ResonateRefused {
    return Object(error).name === "ResonateRefused";
  }

  override name = "ResonateRefused";
}

/** This deployment's token may not search, as it is limited to a namespace. */
export class SearchRefused extends Error {
  override name = "SearchRefused";
}

/** Throws the error of a request that was not answered. */
export function throwUnreachable(error: unknown): never {
  const reason = isTimeout(error) ? "it did not answer in time" : "it could not be reached";
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  throw new ResonateUnavailable(reason, { cause, isTemporary: true });
}

/** @param promise what cannot be decrypted, if it is one promise */
export function throwUndecryptable(promise?: PromiseRecord): never {
  const error = new ResonateRefused(
    "what it keeps is encrypted with a key that this deployment does not have, was changed, or is unencrypted",
  );
  throw Object.assign(error, { undecryptable: promise && { ...promise, param: {}, value: {} } });
}

/** The promise that could not be decrypted, without its content, if that is why a request failed. */
export function undecryptableIn(error: unknown): PromiseRecord | undefined {
  return error instanceof ResonateRefused ? (error as { undecryptable?: PromiseRecord }).undecryptable : undefined;
}

/** Catches the error of a promise that cannot be decrypted, for `instead`. */
export const orIfUndecryptable = <T>(instead: T): ((error: unknown) => T) => {
  return (error) => {
    if (!undecryptableIn(error)) throw error;
    return instead;
  };
};

export function isTimeout(error: unknown): boolean {
  return error instanceof Error && error.name === "TimeoutError";
}

/** The error of an answer that is a failure. It tells only the status, as the server's words may hold contents of promises. */
export function refusal(status: number): ResonateUnavailable {
  if (status === 401 || status === 403) return new ResonateRefused("it refused this deployment's token", { status });
  if (status === 400) return new ResonateRefused("it refused the request as malformed", { status });
  if (status === 413) return new ResonateRefused("the request is larger than it takes", { status });
  if (status === 429 || status === 503) {
    return new ResonateUnavailable("it is at capacity", { status, isTemporary: true });
  }
  return new ResonateUnavailable(`it answered ${status}`, { status, isTemporary: status >= 500 && status !== 501 });
}
