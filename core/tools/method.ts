/** The methods that a server answers: what a request for each of them costs, and how it is answered. */
import type { Abilities } from "./abilities.ts";
import type { CallRequest } from "./call-feature.ts";
import type { RequestCost, RequestScope } from "./request-scope.ts";

/** A JSON-RPC request. */
export interface Message {
  jsonrpc: "2.0";
  id: string | number;
  method: string;
  params: Record<string, unknown>;
}

/** What a plain request may hold: one that is certainly well-formed, and is answered without the SDK. */
export interface PlainForm {
  /** Its parameters, besides `_meta`. */
  params: readonly string[];
  /** The parameter that a modern request repeats in its `Mcp-Name` header. */
  namedBy?: string;
}

/** What a plain request says besides its method and parameters. */
export interface Plain extends Abilities {
  era: "modern" | "legacy";
  progressToken?: string | number | undefined;
  /** The revision that a handshake asks for. */
  revision?: string;
  /** Its `_meta`, without the entries of the protocol itself. */
  meta?: Record<string, unknown> | undefined;
}

/** A request that has been read, and is within its caller's limits. */
export interface MethodRequest {
  message: Message;
  /** Undefined for a request that is not plain. */
  plain: Plain | undefined;
  /** Whether the answer may be a stream, by its cost. */
  streams: boolean;
  request: Request;
  scope: RequestScope;
  /** The response to a plain request with this result; undefined if the SDK has to answer. */
  respond(result: () => Promise<object>): Promise<Response | undefined>;
  /**
   * The SDK's response; `streamed`: a stream that begins at once. `signal`: in place of the request's. `onEnd` is called when the
   * response is complete.
   */
  sdk(streamed?: boolean, signal?: AbortSignal, onEnd?: () => void): Promise<Response>;
}

/** A method of a feature, or of the server itself. */
export interface Method {
  /** Without it no request for the method is plain. */
  form?: PlainForm;
  /** The era of the protocol that has the method. Default: both. */
  era?: "modern";
  /** What a request costs beyond the default, which is a request that touches no job. */
  cost?(params: Record<string, unknown>): Partial<RequestCost>;
  /** The result, for plain requests and through the SDK alike. @throws {ProtocolError} */
  handle?(params: Record<string, unknown>, request: CallRequest): Promise<object>;
  /** The response, for a method whose response is no plain result; undefined if the SDK has to answer. */
  answer?(request: MethodRequest): Response | Promise<Response | undefined> | undefined;
}

/** Resources that a feature serves. */
export interface ResourceProvider {
  /** What a read of the resource costs; undefined for a resource of others. */
  costOf(uri: string): Partial<RequestCost> | undefined;
  /** @throws {ProtocolError} */
  read(uri: string, request: CallRequest): Promise<object>;
}
