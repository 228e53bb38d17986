/** A call whose headers the server may refuse, because the schema that says which arguments they repeat has changed. */
import { HEADER_MISMATCH } from "../../../core/tools/index.ts";
import { AnswerLost, RpcError } from "../host/errors.ts";
import type { OpenRequest } from "../host/open-request.ts";

/** Sends a request, and once more after `refresh` if its headers are refused: the server has not executed it then. */
export function refreshedRequest(send: () => OpenRequest, refresh: () => Promise<void>): OpenRequest {
  let current = send();
  let why: string | undefined;
  const result = current.result.catch(async (error: unknown) => {
    if (!(error instanceof RpcError) || error.code !== HEADER_MISMATCH) throw error;
    await refresh();
    if (why !== undefined) throw new AnswerLost(why);
    current = send();
    return current.result;
  });
  result.catch(() => {});
  return {
    result,
    cancel(reason) {
      why = `it was cancelled: ${reason}`;
      current.cancel(reason);
    },
    leave() {
      why = "nobody waits for it any more";
      current.leave();
    },
    release: () => current.release(),
  };
}
