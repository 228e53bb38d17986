/** The face of this layer: Resonate's promises, their ids and values, and the connection to its server. */

export { base64ToBytes, bytesToBase64, bytesToBase64Url, fromBase64, toBase64 } from "./base64.ts";
export {
  CALLBACKS_PURPOSE,
  CALLER_TAG,
  CLEANUP_FUNCTION,
  childOf,
  decodeValue,
  encodeValue,
  getOf,
  lineage,
  ORDER_TAG,
  PARTS_KEY,
  type Parts,
  parseStored,
  partsIn,
  RESERVATION_TAG,
  RESUMES_TAG,
  RETENTION_TAG,
  resolveOf,
  PARENT_TAG,
  STARTER_TAG,
  WAITS_FOR_CLEANUP_TAG,
} from "./codec.ts";
export { BatchedReads } from "./connection/batched-reads.ts";
export { type Exchange, type Requests, ResonateClient, type Search } from "./connection/client.ts";
export type { Channel } from "./connection/connections.ts";
export { endpointOf, type StoreEndpoint } from "./connection/endpoint.ts";
export {
  orIfUndecryptable,
  ResonateRefused,
  ResonateUnavailable,
  SearchRefused,
  undecryptableIn,
} from "./connection/failures.ts";
export type { ListenerKey, PromiseWatch, SettlementListener } from "./connection/promise-watch.ts";
export {
  type AcquiredTask,
  type LeaseRef,
  MAX_BATCH_LINES,
  type Message,
  NDJSON,
  type OperationKind,
  PROTOCOL_VERSION,
  type PromiseRecord,
  type PromiseState,
  type RequestData,
  type Value,
} from "./connection/protocol.ts";
export { pagesOf } from "./connection/search-all.ts";
export { RULES_OF_0_9, ServerRules, timerTags, withoutTimerTags } from "./connection/server-rules.ts";
export { endOf, isLate } from "./deadline.ts";
export {
  begunId,
  belowSql,
  CHILD_SEPARATOR,
  callbackId,
  callerKey,
  chainLink,
  cleanUpId,
  cleanUpTimerId,
  escapeId,
  executionMarkId,
  feedEntryId,
  GENERATION_SEPARATOR,
  IS_FIRST_GENERATION_SQL,
  idsFrom,
  isCallback,
  isChildOf,
  isLimitSql,
  isOutput,
  isRoot,
  journalEntryId,
  limitId,
  limitSlotId,
  localId,
  NAMESPACE_PATTERN,
  oneForm,
  orderId,
  outputId,
  POSTGRES_PATTERNS,
  positionTimerId,
  recordMarkId,
  resumptionId,
  rootOf,
  runId,
  splitGeneration,
  splitKey,
  startRecordEnd,
  startRecordId,
  storedMarkId,
  unescapeId,
} from "./ids.ts";
export {
  canonical,
  exactJsonOf,
  integerOf,
  isExactInteger,
  isRecord,
  isTooDeep,
  jsonOf,
  MAX_DEPTH,
  parseExact,
  rounded,
  type UnheldNumber,
  unheldNumberIn,
  unheldReason,
} from "./json.ts";
export {
  CALLER_ROLE,
  CALLERS_ROLE,
  fetchFrom,
  keyFrom,
  type Locatable,
  type ObjectAddress,
  OPERATORS_ROLE,
  objectName,
  type ResonateNamespace,
  withLocation,
} from "./object-address.ts";
export {
  type Answer,
  answered,
  type CallableObjects,
  methodsInRole,
  type ObjectCalls,
  type Remote,
  resultOf,
  splitRole,
} from "./object-calls.ts";
export {
  type ObjectSchema,
  ObjectSql,
  type ObjectStorage,
  openSchemas,
  type Row,
  type SqlValue,
} from "./object-storage.ts";
export { backoff, pause, within } from "./pacing/backoff.ts";
export { Slots, Turns } from "./pacing/slots.ts";
export { FREE_PLAN, MAX_OBJECT_BYTES } from "./plan-limits.ts";
export { BODY_TIMEOUT_MS, drainUnread, readBytes } from "./read-bytes.ts";
export { isSameSecret } from "./same-secret.ts";
export { KEYS_PATTERN, Sealing } from "./sealing.ts";
export { BOOKKEEPING_RETENTION, isLandmark, last, sequenceEnd } from "./sequence.ts";
export { hex, sha256Of } from "./sha256.ts";
export { MAX_JOB_BYTES, markedBytes, reportedBytesIn, sizeOf } from "./size.ts";
export { checkSupport, SUPPORTED_RELEASE, SUPPORTED_RELEASES } from "./support.ts";
export { EMPTY_SHA256, mayBeToken } from "./tokens.ts";
