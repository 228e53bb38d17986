/**
 * What a test's edge is bundled with, before its own code: lets the test move its `Date`. Timers of the edge, such as how
 * long a call waits, go by the machine's time.
 */
import type { EdgeWorker } from "../../functions/edge.ts";
import { shiftDate } from "./shift-date.ts";

/** Where the edge of a test is told how far its time is ahead, in milliseconds. */
export const CLOCK_PATH = "/.test/clock";

const setAhead = shiftDate();

/** The same Worker, which also answers a `POST` to `CLOCK_PATH`. */
export function movable(worker: EdgeWorker): EdgeWorker {
  return {
    ...worker,
    async fetch(request, env, context) {
      if (new URL(request.url).pathname !== CLOCK_PATH) return worker.fetch(request, env, context);
      setAhead(Number(await request.text()));
      return new Response(null, { status: 204 });
    },
  };
}
