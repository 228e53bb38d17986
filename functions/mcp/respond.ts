/** JSON-RPC responses to plain requests. */
import {
  ErrorCode,
  isInputRequired,
  type Message,
  type Plain,
  ProtocolError,
  SERVER_INFO,
} from "../../core/tools/index.ts";

/** The answers of a server that describes itself so. */
export class Responder {
  readonly #info: object;

  constructor(info: object) {
    this.#info = info;
  }

  /** A result in the form of the 2026-07-28 revision. */
  complete(result: object): object {
    const { _meta } = result as { _meta?: object };
    return { resultType: "complete", ...result, _meta: { ..._meta, [SERVER_INFO]: this.#info } };
  }

  /** The JSON-RPC response to a request with this result, and its HTTP status; undefined if the SDK has to answer. */
  async answerTo(id: Message["id"], { era }: Plain, result: Promise<object>) {
    try {
      const value = await result;
      // The SDK calls again, and checks that the client can answer the questions.
      if (isInputRequired(value)) return undefined;
      const message = { jsonrpc: "2.0", id, result: era === "modern" ? this.complete(value) : value };
      return { message, status: 200 };
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      const { code, message, data } = error;
      return {
        message: { jsonrpc: "2.0", id, error: { code, message, data } },
        // The only error for which the protocol has an HTTP status.
        status: code === ErrorCode.MissingRequiredClientCapability ? 400 : 200,
      };
    }
  }

  /** The same as a JSON response. */
  async respond(id: Message["id"], plain: Plain, result: Promise<object>): Promise<Response | undefined> {
    const answer = await this.answerTo(id, plain, result);
    return answer && Response.json(answer.message, { status: answer.status });
  }
}
