import { type Context, Resonate } from "@resonatehq/sdk";
import { progress } from "./progress.ts";

const resonate = new Resonate({ group: "words" });

function* countWords(ctx: Context, { text }: { text: string }): Generator<unknown, { words: number }, never> {
  yield* ctx.run(() => progress(resonate.promises, ctx.originId, 1, { message: "counting" }));
  if (text.length > 1_000) throw new Error("the text is too long");
  const words = yield* ctx.run(() => text.split(" ").filter(Boolean).length); // recorded: not done again after a crash
  yield* ctx.sleep(1_000); // holds no worker
  return { words };
}

resonate.register("count_words", countWords);
