/** Why a connection to a wrapped server could not be opened, in words. */
import { SdkHttpError } from "@modelcontextprotocol/client";
import { PrivateAddress } from "../../../worker/connection/index.ts";
import { describeAnswer } from "../host/errors.ts";

/** A program did not open a session. The last line that it wrote on stderr usually says why. */
export class ProgramFailed extends Error {
  override name = "ProgramFailed";
  readonly lastLine: string;

  constructor(cause: Error, lastLine: string) {
    super(`${cause.message}; it wrote: ${lastLine}`, { cause });
    this.lastLine = lastLine;
  }
}

/** Whether the server's address was refused. */
export const isAddressRefused = (error: unknown): boolean =>
  error instanceof PrivateAddress || (error instanceof Error && isAddressRefused(error.cause));

/** System error codes in words. */
const SYSTEM_ERRORS: Readonly<Record<string, string>> = {
  ECONNREFUSED: "nothing listens there",
  ENOTFOUND: "there is no host of that name",
  EAI_AGAIN: "the name of its host could not be looked up",
  ENOENT: "there is no such program, or no folder to run it in",
  EACCES: "the program may not be run",
};

/** The message of the innermost cause. */
export function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (error instanceof SdkHttpError) return withAdvice(error);
  const { cause, message, code, syscall } = error as Error & { code?: unknown; syscall?: unknown };
  if (cause instanceof Error && !(error instanceof ProgramFailed)) return reasonOf(cause);
  const isSystemError = syscall !== undefined || message === "" || /^UND_ERR/.test(String(code));
  if (typeof code !== "string" || !isSystemError) return message;
  return SYSTEM_ERRORS[code] === undefined ? code : `${SYSTEM_ERRORS[code]} (${code})`;
}

/** The server's answer, with advice if there may be no endpoint of the protocol at its URL. */
function withAdvice(error: SdkHttpError): string {
  if (error.status !== 404 && error.status !== 405) return describeAnswer(error);
  return `${describeAnswer(error)}. Give the URL of its streamable HTTP endpoint, often /mcp; the older transport, HTTP with SSE alone, is not supported`;
}
