import type { Context } from "@resonatehq/sdk/async";
import PQueue from "p-queue";
import { CONFIRM_ABOVE, monthsOf, type WeatherMonth, type WeatherRange, weather } from "../../functions/jobs/index.ts";
import type { RemoteStore } from "../../functions/resonate/store.ts";
import { startJob } from "../../functions/start.ts";
import { viewOf } from "../../functions/status.ts";
import { Caller, UNTIL_DONE } from "./caller.ts";
import type { JobFunction } from "./durable.ts";

/** The wait before months are looked at again, in milliseconds: from first to last, growing. */
const FIRST_LOOK = 1_000;
const LAST_LOOK = 10_000;

/**
 * Gathers a span of months: each is the job of that month alone, so that a month gathered before, or meanwhile by
 * somebody else, is not gathered again. Months that fail are reported beside those that do not; the range fails when
 * every month does.
 */
export function gatherRange(store: RemoteStore): JobFunction<WeatherRange> {
  return async function weather_range(ctx: Context, args: WeatherRange) {
    const caller = new Caller(store, ctx);
    const months = monthsOf(args);
    const total = months.length;
    if (total > CONFIRM_ABOVE && !args.confirmed && !(await confirms(caller, args, total))) {
      // Not a result: that would be kept for ever, and who changes his mind could not have this range gathered.
      throw new Error(`declined: none of the ${total} requests was made`);
    }

    const untilDone = ctx.options({ retryPolicy: UNTIL_DONE });
    const names = await ctx.run(function start() {
      const own = store.onBehalfOf(ctx.id);
      return all(months, async (month) => (await startJob(own, weather, month, Date.now())).name);
    }, untilDone);
    let running = names;
    let done = -1;
    for (let pause = FIRST_LOOK; ; pause = Math.min(pause * 1.5, LAST_LOOK)) {
      running = await ctx.run(function look() {
        return stillRunning(store, running);
      }, untilDone);
      if (total - running.length !== done) {
        done = total - running.length;
        await caller.tell(`${done} of ${total} months`);
      }
      if (running.length === 0) break;
      await ctx.sleep(Math.round(pause));
    }
    const gathered = await ctx.run(function collect() {
      return collectMonths(store, months, names);
    }, untilDone);
    if (gathered.every((month) => "error" in month)) throw new Error(`no month was gathered: ${gathered[0]?.error}`);
    return { months: gathered };
  };
}

async function confirms(caller: Caller, { from, to }: WeatherRange, total: number): Promise<boolean> {
  const answer = await caller.ask({
    message: `Gathering ${from} to ${to} takes ${total} requests to the weather archive. Go on?`,
    requestedSchema: {
      type: "object",
      properties: { confirm: { type: "boolean", title: "Go on", description: `Make the ${total} requests` } },
      required: ["confirm"],
    },
  });
  return answer.action === "accept" && answer.content.confirm === true;
}

async function stillRunning(store: RemoteStore, names: string[]): Promise<string[]> {
  const promises = await all(names, (name) => store.get(name));
  return names.filter((_name, i) => promises[i]?.state === "pending");
}

async function collectMonths(store: RemoteStore, months: WeatherMonth[], names: string[]) {
  const views = await all(names, async (name) => viewOf(name, await store.get(name)));
  return views.map((view, i) => {
    const { year, month } = months[i] as WeatherMonth;
    const { job_name, result, error } = view;
    return { year, month, job_name, ...(view.status === "complete" ? { weather: result } : { error }) };
  });
}

/** How many calls ranges have under way to the Resonate server at once. */
const calls = new PQueue({ concurrency: 32 });

function all<Item, Result>(items: readonly Item[], call: (item: Item) => Promise<Result>): Promise<Result[]> {
  return calls.addAll(items.map((item) => () => call(item)));
}
