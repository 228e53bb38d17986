import * as z from "zod";
import { defineJob, HOUR } from "../../../../core/index.ts";

const n = z.object({ n: z.number() });
const id = (args: z.infer<typeof n>) => args.n;

export const titles = defineJob({ kind: "titles", args: n, id, deadline: HOUR });
export const halves = defineJob({ kind: "halves", args: n, id, deadline: HOUR, onRestart: "resume" });
/** Reserves and pays under an order number of its own. */
export const order = defineJob({ kind: "order", args: n, id, deadline: HOUR, onRestart: "resume" });
export const laterHalves = defineJob({
  kind: "halves",
  args: n,
  id,
  deadline: HOUR,
  onRestart: "resume",
  version: 2,
});
export const pages = defineJob({
  kind: "pages",
  args: z.object({ what: z.string() }),
  result: z.object({ text: z.string() }),
  id: ({ what }) => what,
  deadline: HOUR,
  freshFor: 60_000,
});

/** Counts wrongly in the first code. */
export const eggs = defineJob({ kind: "eggs", args: n, id, deadline: HOUR });
/** Notes when its signal fires. */
export const listener = defineJob({ kind: "listener", args: n, id, deadline: HOUR });

/** Makes bookings, and undoes them if it fails. */
export const trip = defineJob({ kind: "trip", args: n, id, deadline: HOUR });
export const resumedTrip = defineJob({ kind: "resumed_trip", args: n, id, deadline: HOUR, onRestart: "resume" });

/** The job name does not contain the city. */
const forecastOptions = {
  args: z.object({ name: z.string(), city: z.string() }),
  id: ({ name }: { name: string; city: string }) => name,
  deadline: HOUR,
};
export const forecast = defineJob({ ...forecastOptions, kind: "forecast", onRestart: "resume" });
export const strictForecast = defineJob({
  ...forecastOptions,
  kind: "strict_forecast",
  otherArguments: "refuse",
});
