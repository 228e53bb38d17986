/** What a card shows of a job. */

import { filesIn, referringPart } from "../../core/author/index.ts";
import {
  currentJobOf,
  type DurablePromise,
  doingOf,
  latestOf,
  newerGeneration,
  viewOf,
} from "../../core/jobs/index.ts";
import { CARD_FILES, type CallContext } from "../../core/tools/index.ts";

/** The longest arguments of a job that a card gets, in characters of JSON. */
const MAX_ARGUMENTS = 4_000;

/** The most files of a job that a card gets. */
const MAX_FILES = 20;

export async function cardOf(promise: DurablePromise, { store, signal }: CallContext) {
  const { name, args } = promise;
  const { result: _result, ...view } = viewOf(name, promise);
  const shownView = { ...view, ...((JSON.stringify(args) ?? "").length <= MAX_ARGUMENTS && { arguments: args }) };
  if (promise.state !== "pending") {
    const files = filesIn(referringPart(promise), MAX_FILES);
    return {
      ...shownView,
      newer: (await newerGeneration(store, promise, signal))?.name,
      ...(files.length > 0 && { [CARD_FILES]: files }),
    };
  }
  const current = await currentJobOf(store, promise, signal, "recent");
  const { progress, step } = current.feed.entry ?? {};
  const questions = [...current.questions].map(([question, asked]) => ({ ...asked.question, question }));
  const partial = await latestOf(store, promise.id, current.feed.entry, signal);
  return { ...shownView, partial, doing: doingOf(current, Date.now()), progress, step, questions };
}
