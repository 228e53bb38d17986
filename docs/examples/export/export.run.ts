import { HOUR, implement, MINUTE, SECOND } from "../../../core/index.ts";
import { call, Services } from "../services.ts";
import { exported } from "./export.ts";

interface Look {
  state: "running" | "ready";
  file: string;
  rows: number;
}

/** Polls with growing pauses until the export is ready: the retries of a failing step do this. */
export const exportRun = implement(
  exported,
  async (ctx, { table }) => {
    const { id } = await ctx.step("start", (step) => call<{ id: string }>(step, "/exports", { table }));
    try {
      const look = await ctx.step(
        "wait",
        async (step) => {
          const look = await call<Look>(step, `/exports/${id}`);
          if (look.state !== "ready") throw new Error("it is not ready yet");
          return look;
        },
        { retry: { initialInterval: 10 * SECOND, maxInterval: 10 * MINUTE, maxDuration: 12 * HOUR } },
      );
      return { file: look.file, rows: look.rows };
    } finally {
      // Runs after a cancellation, too.
      await ctx.cleanup((ctx) => ctx.step("release", (step) => call(step, `/exports/${id}/release`, {})));
    }
  },
  { env: Services },
);
