/** The product's worker with faults of its own, each on some of the jobs: what a chaos run has to find. */
import { Codec, HttpNetwork } from "@resonatehq/sdk";
import { JOBS, WeatherMonth } from "../../functions/jobs/index.ts";
import { RemoteStore } from "../../functions/resonate/store.ts";
import type { DurableFunction } from "../../worker/functions/durable.ts";
import { durableFunctions } from "../../worker/functions/index.ts";
import { OpenMeteo, type Period } from "../../worker/open-meteo.ts";
import { runWorker } from "../../worker/run.ts";
import { BROKEN_MONTHS } from "./broken.ts";

class AskedAgain extends OpenMeteo {
  override async daily(period: Period, deadline: number) {
    const isBroken = Number(period.start_date.slice(5, 7)) === BROKEN_MONTHS.fetchesAgain;
    // More often than a machine that stands still for a moment now and then would explain.
    for (let i = 0; isBroken && i < 5; i++) await super.daily(period, deadline);
    return super.daily(period, deadline);
  }
}

await runWorker((config) => {
  const { RESONATE_URL: url, WEATHER_API_URL, UPSTREAM_TIMEOUT_SECONDS, UPSTREAM_CONCURRENCY } = config;
  const archive = new AskedAgain({
    url: WEATHER_API_URL,
    timeout: UPSTREAM_TIMEOUT_SECONDS * 1_000,
    concurrency: UPSTREAM_CONCURRENCY,
  });
  const network = new HttpNetwork({ url });
  const settle = (id: string, value: unknown) =>
    network.send({
      kind: "promise.settle",
      head: { corrId: "1", version: "2026-04-01" },
      data: { id, state: "resolved", value: new Codec().encode(value) },
    });
  return durableFunctions(archive, new RemoteStore(config, JOBS)).map((sound): DurableFunction => {
    if (sound.name === "timer") return { ...sound, run: async () => "complete" };
    if (sound.name !== "weather_data") return sound;
    return {
      ...sound,
      async run(ctx, args, log) {
        const { month } = WeatherMonth.parse(args[0]);
        if (month === BROKEN_MONTHS.drops) return new Promise(() => {});
        if (month === BROKEN_MONTHS.settlesTwice) await settle(ctx.id, "settled too soon");
        const result = await sound.run(ctx, args, log);
        return month === BROKEN_MONTHS.changes ? { ...(result as object), latitude: 0 } : result;
      },
    };
  });
});
