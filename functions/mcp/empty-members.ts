import { isRecord } from "../../core/resonate/index.ts";
import { CLIENT_CAPABILITIES, CLIENT_INFO, LABELS_META, LOG_LEVEL } from "../../core/tools/index.ts";

/** The members of parameters that are nothing if they are empty: libraries write null for them, or an empty list for an object. */
const OPTIONAL_PARAMS = ["_meta", "arguments", "cursor", "inputResponses", "requestState", "context", "task"];
const OPTIONAL_META = ["progressToken", LOG_LEVEL, CLIENT_INFO, LABELS_META, "idempotencyKey"];

/** Removes empty optional members of the protocol from a message, as if its client had left them out. Data of users is unchanged. */
export function leaveOutEmpty(message: unknown): void {
  if (!isRecord(message)) return;
  remove(message, ["params"]);
  const { params, result } = message;
  if (isRecord(result)) remove(result, ["content", "_meta"]);
  if (!isRecord(params)) return;
  remove(params, OPTIONAL_PARAMS);
  const { _meta: meta, inputResponses } = params;
  if ("capabilities" in params) params.capabilities = declared(params.capabilities);
  if (isRecord(params.clientInfo)) removeAll(params.clientInfo);
  for (const response of isRecord(inputResponses) ? Object.values(inputResponses) : [])
    if (isRecord(response)) remove(response, ["content", "_meta"]);
  if (!isRecord(meta)) return;
  remove(meta, OPTIONAL_META);
  if (CLIENT_CAPABILITIES in meta) meta[CLIENT_CAPABILITIES] = declared(meta[CLIENT_CAPABILITIES]);
  if (isRecord(meta[CLIENT_INFO])) removeAll(meta[CLIENT_INFO]);
}

const isEmpty = (value: unknown): boolean => value === null || (Array.isArray(value) && value.length === 0);

function remove(record: Record<string, unknown>, names: readonly string[]): void {
  for (const name of names) if (name in record && isEmpty(record[name])) delete record[name];
}

/** Removes the empty members of an object of the protocol, and of the objects in it. */
function removeAll(record: Record<string, unknown>): void {
  for (const [name, value] of Object.entries(record)) {
    if (isEmpty(value)) delete record[name];
    else if (isRecord(value)) removeAll(value);
  }
}

/** The capabilities that a client declares, which must be an object. */
function declared(capabilities: unknown): unknown {
  if (isEmpty(capabilities)) return {};
  if (isRecord(capabilities)) removeAll(capabilities);
  return capabilities;
}
