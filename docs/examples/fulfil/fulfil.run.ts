import { implement, MINUTE } from "../../../core/index.ts";
import { call, Services } from "../services.ts";
import { fulfilled, parcel } from "./fulfil.ts";

export const parcelRun = implement(
  parcel,
  async (ctx, { order, warehouse }) => {
    const { tracking } = await ctx.step("pack", (step) =>
      call<{ tracking: string }>(step, `/warehouses/${warehouse}/parcels`, { order }),
    );
    const isSent = async (look: Parameters<typeof call>[0]) =>
      (await call<{ sent: boolean }>(look, `/parcels/${tracking}`)).sent;
    await ctx.until("sent", { every: 10 * MINUTE }, isSent);
    return { tracking };
  },
  { env: Services },
);

/** Child jobs: each has a name, a page and a deadline of its own. When one fails, the others are cancelled. */
export const fulfilRun = implement(fulfilled, async (ctx, { order, warehouses }) => {
  const parcels = await ctx.all(warehouses, (ctx, warehouse) => ctx.start(parcel, { order, warehouse }));
  try {
    const sent = await ctx.all(parcels, (ctx, job) => ctx.await(job), { key: (job) => job.name });
    return { parcels: sent.map(({ tracking }) => tracking) };
  } catch (error) {
    for (const job of parcels) await job.cancel();
    throw error;
  }
});
