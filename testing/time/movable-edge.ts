/** Wraps the edge of a test so that the test can move its `Date`. Timers of the edge use the machine's time. */
import type { EdgeWorker } from "../../functions/edge.ts";
import { ahead, setAhead, shiftDate } from "./shift-date.ts";

/** A `POST` of a number to this path sets by how many milliseconds the edge's time is ahead. */
export const CLOCK_PATH = "/.test/clock";

shiftDate();

/** The same Worker, which also answers a `POST` to `CLOCK_PATH`. */
export function movable(worker: EdgeWorker): EdgeWorker {
  return {
    ...worker,
    async fetch(request, env, context) {
      if (new URL(request.url).pathname !== CLOCK_PATH) return worker.fetch(request, env, context);
      // An edge that was stopped reads several of these requests when it continues, in any order.
      setAhead(Math.max(ahead, Number(await request.text())));
      return new Response(null, { status: 204 });
    },
  };
}
