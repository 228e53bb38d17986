/** Why a request to a wrapped server has no answer. */
import { SdkHttpError } from "@modelcontextprotocol/client";

/** It has not reached the server: it may be sent again, whatever it is. */
export class NotSent extends Error {
  override name = "NotSent";
}

/** It was not sent, and will not be however often it is tried: something is not set as it has to be, or is refused here. */
export class Unsendable extends NotSent {
  override name = "Unsendable";
}

/** The server, or what stands before it, has refused it, and so has not done it. */
export class CallRefused extends Error {
  override name = "Refused";
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }

  /** Whether the same request may be taken later. */
  get mayGetBetter(): boolean {
    return [408, 409, 425, 429].includes(this.status);
  }
}

/** It was sent, and no answer will come: whether it was done is unknown. */
export class Lost extends Error {
  override name = "Lost";
}

/** It was sent, and what has become of it cannot be found out. */
export class Gone extends Error {
  override name = "Gone";
}

/** The server's answer is an error of the protocol. */
export class RpcError extends Error {
  override name = "RpcError";
  readonly code: number;

  constructor(code: number, message: string) {
    super(message);
    this.code = code;
  }
}

/** Why a request could not be sent, as far as that can be known. */
export function classified(error: unknown): Error {
  if (error instanceof Gone) return error;
  if (error instanceof SdkHttpError) {
    const { status = 0 } = error;
    const reason = `it answered ${status}${error.message ? `: ${error.message.slice(0, 200)}` : ""}`;
    if (status >= 400 && status < 500) return new CallRefused(status, reason);
    return new Lost(reason);
  }
  const cause = (error as { cause?: { code?: unknown; message?: string } } | undefined)?.cause;
  const code = String(cause?.code ?? (error as { code?: unknown })?.code ?? "");
  // The connection was not made, so nothing went over it.
  if (
    /^(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|UND_ERR_CONNECT_TIMEOUT|NotConnected)$/i.test(code)
  ) {
    return new NotSent(code);
  }
  if ((cause as Error | undefined)?.constructor?.name === "PrivateAddress") return new NotSent(String(cause?.message));
  return new Lost(cause?.message ?? (error instanceof Error ? error.message : String(error)));
}

/** Why a connection is ended by this side, where the message says that: something longer came than is taken. */
export function tooLong(message: string): string | undefined {
  const [, most] = /(?:more than|maximum size of) (\d+) bytes/.exec(message) ?? [];
  return most === undefined
    ? undefined
    : `the connection was ended, because it sent more than ${most} bytes in one message`;
}
