/** The face of this layer: tools, what a call of them accepts, and what it answers. */

export { abilitiesOf, type DeclaredCapabilities } from "./abilities.ts";
export { answersOf, readAnswersBy, viewOfRange, withMedia } from "./answers.ts";
export { check, jobName, jobNames, jsonText, MAX_NAMES, nameText } from "./arguments.ts";
export { completeResult, MAX_WHOLE_CHARACTERS } from "./byte-range.ts";
export type { CallFeature, CallRequest, CallResult, ToolCall } from "./call-feature.ts";
export { callerJobs } from "./caller-jobs.ts";
export { checkAnswer, giveAnswer, schemaIssues } from "./answering.ts";
export { storeInParts } from "./chunks.ts";
export {
  answerReader,
  asPart,
  base64Of,
  isApp,
  isOurs,
  protocolErrorIn,
  RPC_FAILURE,
  type RpcFailure,
  sizeOf,
  withoutOurs,
} from "./content.ts";
export { EVENT_ERROR_CODES, type EventErrorCodes, eventError, invalidParams } from "./event-errors.ts";
export { CARD_FILES, type FileView } from "./file-view.ts";
export { HOSTS, type HostSetup, hostSetups, type Server } from "./host-setups.ts";
export type { Identity } from "./identity.ts";
export { findPromise, type HandleRequest, JobHandles, promiseOf, unknownTaskError } from "./job-handles.ts";
export type { DurableTool } from "./job-tool.ts";
export {
  CARD_MIME_TYPE,
  type CallToolResult,
  CLIENT_CAPABILITIES,
  CLIENT_INFO,
  ErrorCode,
  FILES_META,
  type InputRequiredResult,
  JOB_META,
  LABELS_META,
  LOG_LEVEL,
  type OAuthProtectedResourceMetadata,
  OWN_KEY_PATTERN,
  PROTOCOL_REVISION,
  PROTOCOL_VERSION_META,
  ProtocolError,
  SERVER_INFO,
  SUBSCRIPTION_ID,
  TASKS_EXTENSION,
  type ToolAnnotations,
  UI_EXTENSION,
} from "./mcp.ts";
export type { Message, Method, MethodRequest, Plain, PlainForm } from "./method.ts";
export { areConforming, HEADER_MISMATCH, headerMismatch, paramHeaders, withoutAnnotations } from "./param-headers.ts";
export { ANSWER_SUBJECT, isInputRequired, isToolAnswer, presentJob, referringIn, type ToolAnswer } from "./present.ts";
export type {
  Access,
  LimitReached,
  RequestBound,
  RequestCost,
  RequestEntry,
  RequestLog,
  RequestScope,
  RequestTrace,
  StreamSlot,
  StreamTerms,
} from "./request-scope.ts";
export {
  arrange,
  boundary,
  costOf,
  cutToLimit,
  FIRST_PART,
  knowsLinks,
  limitOf,
  linksTo,
  MAX_ANSWER,
  MAX_MEDIA,
  noteOn,
  type PartialView,
  type Selection,
  uriOf,
  viewOfOmitted,
  withShortestTexts,
} from "./results.ts";
export type { Middleware, Route, RouteHandler, RouteTypes, Visit } from "./route.ts";
export {
  type Acceptance,
  builtInTool,
  type CallContext,
  type ProxiedFeatures,
  refusal,
  type Tool,
  type ToolContext,
  ToolError,
  type ToolSchedule,
  type UnapprovedChanges,
  type UpstreamServer,
} from "./tool.ts";
export { PROGRESS_INTERVAL_MS, waitFor } from "./wait-for.ts";
