/** The product's worker with faults that a chaos run must find. Each fault affects some of the jobs. */
import { Codec, HttpNetwork } from "@resonatehq/sdk";
import type { Context, Implementation } from "../../../core/index.ts";
import { runs } from "../../../tools/runs.ts";
import { type Month, month } from "../../../tools/weather/month.ts";
import { runWorker } from "../../../worker/worker.ts";
import { BROKEN_MONTHS } from "./broken-months.ts";

type Code = (ctx: Context, args: unknown) => Promise<unknown>;

/** The same job with other code, which may call the correct code. */
function broken(sound: Implementation, run: (code: Code) => Code): Implementation {
  return {
    ...sound,
    versionOf(version) {
      const code = sound.versionOf(version) as Code | undefined;
      return code && (run(code) as ReturnType<Implementation["versionOf"]>);
    },
  };
}

const { RESONATE_URL = "", RESONATE_NAMESPACE = "" } = process.env;
const network = new HttpNetwork({ url: RESONATE_URL });
const settle = async (id: string, value: unknown) => {
  await network.send({
    kind: "promise.settle",
    head: { corrId: "1", version: "2026-04-01" },
    data: { id, state: "resolved", value: new Codec().encode(value) },
  });
};

/** Runs each step several times, more often than a pause of the machine could explain. */
function again(ctx: Context): Context {
  const step: Context["step"] = (name, fn, options) =>
    ctx.step(
      name,
      async (each) => {
        for (let i = 0; i < 5; i++) await fn(each);
        return fn(each);
      },
      options,
    );
  const get = (_ctx: Context, key: keyof Context) => {
    if (key === "step") return step;
    const own = ctx[key];
    return typeof own === "function" ? own.bind(ctx) : own;
  };
  return new Proxy(ctx, { get } as ProxyHandler<Context>);
}

const gather = (code: Code): Code => {
  return async (ctx, args) => {
    switch ((args as Month).month) {
      case BROKEN_MONTHS.drops:
        return ctx.step("for ever", () => new Promise(() => {}));
      case BROKEN_MONTHS.settlesTwice:
        await ctx.step("too soon", () => settle(RESONATE_NAMESPACE + ctx.jobName, "settled too soon"));
        return code(ctx, args);
      case BROKEN_MONTHS.fetchesAgain:
        return code(again(ctx), args);
      case BROKEN_MONTHS.changes:
        return { ...((await code(ctx, args)) as object), latitude: 0 };
      default:
        return code(ctx, args);
    }
  };
};

await runWorker({
  functions: runs.map((sound) => {
    if (sound.job.kind === "timer") return broken(sound, () => async () => "complete");
    return sound.job.kind === month.kind ? broken(sound, gather) : sound;
  }),
});
