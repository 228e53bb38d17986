/** Notes for operators the calls by which callers end, answer and remove jobs. */
import type { EdgeFeature } from "../../core/feature.ts";
import { jsonOf } from "../../core/resonate/index.ts";
import { AUDITED_METHODS } from "./calls.ts";

/** Gets the caller's label, the tool or method, its parameters, and whether it was refused. It must not reject. */
type Note = (caller: string, what: string, params: object, isRefused: boolean) => Promise<void>;

export const audit = (note: Note): EdgeFeature => ({
  name: "audit",
  note(what, params, { caller, waitUntil }, answered) {
    if (!AUDITED_METHODS.includes(what)) return;
    // Of a call that fails, or whose caller leaves, nobody knows whether it was done.
    const refusal = answered.then(isRefusal).catch(() => false);
    waitUntil(refusal.then((isRefused) => note(caller.label, what, params, isRefused)));
  },
});

/** Whether an answer says that nothing was done. */
async function isRefusal(response: Response): Promise<boolean> {
  if (!response.ok) return true;
  const text = await response.clone().text();
  // A message, or events of which the last one is the answer.
  const [message] = text
    .split("\n")
    .flatMap((line) => jsonOf(line.replace(/^data: ?/, "")) ?? [])
    .slice(-1);
  const { error, result } = Object(message) as { error?: object; result?: { isError?: boolean } };
  return error !== undefined || result?.isError === true;
}
