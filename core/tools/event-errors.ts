/** The errors of the Events extension. */
import type * as z from "zod";
import { ErrorCode, ProtocolError } from "./mcp.ts";

/** The error codes of the Events extension in the SEP, and in the sketch that preceded it. */
export const EVENT_ERROR_CODES = {
  sep: {
    NotFound: -32023,
    Forbidden: -32024,
    ResourceExhausted: -32025,
    Unsupported: -32026,
    CallbackEndpointError: -32027,
  },
  sketch: {
    NotFound: -32011,
    Forbidden: -32012,
    ResourceExhausted: -32013,
    Unsupported: -32014,
    CallbackEndpointError: -32015,
  },
} as const;

export type EventErrorName = keyof (typeof EVENT_ERROR_CODES)["sep"];

/** The codes by the names of the errors. */
export type EventErrorCodes = Readonly<Record<EventErrorName, number>>;

/** An error of the extension. */
export const eventError = (
  codes: EventErrorCodes,
  name: EventErrorName,
  data: Record<string, unknown>,
): ProtocolError => new ProtocolError(codes[name], name, data);

/** The error of parameters that do not fit, for a reason in words or the one that a schema finds. */
export function invalidParams(reason: string | z.ZodError): ProtocolError {
  const words =
    typeof reason === "string"
      ? reason
      : reason.issues.map(({ path, message }) => `${path.join(".")}: ${message}`).join("; ");
  return new ProtocolError(ErrorCode.InvalidParams, `Invalid params: ${words}`.slice(0, 500));
}
