/** Tens of thousands of sleeping timers, some of which fire during a chaos run. */

import type { Sleepers } from "../../test/chaos/run.ts";
import type { Resonate } from "../../test/support/resonate.ts";
import type { Stack } from "../../test/support/stack.ts";
import { type Database, plant, readTemplate, sleeperId } from "../load/plant.ts";

const HOUR = 3_600_000;

/** The time from the first due timer to the last, in milliseconds. */
const SPREAD = 4 * HOUR;

/** Writes the timers into the server's database. An embedded server is stopped while they are written. */
export async function putToSleep(stack: Stack, count: number, database: Database): Promise<Sleepers> {
  const { resonate, namespace, group } = stack;
  // The timers have another address, which separates them from the clients' jobs. The run's workers take both.
  const target = `poll://any@${group}/sleepers`;
  const id = `${namespace}timer_sleeper`;
  const from = Date.now() + 60_000;
  const args = { timer_name: "sleeper", fires_at: new Date(from + SPREAD).toISOString() };
  await resonate.start({ id, func: "timer", args, group: `${group}/sleepers`, timeoutAt: from + 2 * SPREAD });
  const template = await readTemplate(resonate, id);
  if ("embedded" in database) await stack.server?.end("SIGTERM");
  const dueAt = (n: number) => from + (n / count) * SPREAD;
  await plant(database, template, { count, dueAt });
  if ("embedded" in database) await stack.server?.start();
  const sleepers: Sleepers = {
    fired: 0,
    async reckon(log, before) {
      const promises = await all(resonate, target);
      for (let n = 0; n < count; n++) {
        const promise = promises.get(sleeperId(template, n));
        const [due, name] = [Math.round(dueAt(n)), `sleeper ${n}`];
        const ended = promise?.settledAt ?? Number.POSITIVE_INFINITY;
        if (!promise) log.violation("lost", "it is not there any more", name);
        else if (promise.state === "resolved") sleepers.fired += 1;
        else if (promise.state !== "pending") log.violation("wrong value", `it is ${promise.state}`, name);
        else if (due < before) log.violation("lost", `due ${Date.now() - due} ms ago`, name);
        if (ended < due) log.violation("early", `${due - ended} ms`, name);
      }
    },
  };
  return sleepers;
}

/** All promises with that address, by id. */
async function all(resonate: Resonate, target: string) {
  const promises = new Map<string, { state: string; settledAt?: number }>();
  for (let cursor: string | undefined; ;) {
    const page = { tags: { "resonate:target": target }, limit: 1_000, ...(cursor !== undefined && { cursor }) };
    const { head, data } = await resonate.call("promise.search", page);
    if (head.status !== 200 || typeof data !== "object") throw new Error(`promise.search answered ${head.status}`);
    for (const { id, state, settledAt } of data.promises)
      promises.set(id, { state, ...(settledAt !== undefined && { settledAt }) });
    if (data.cursor === undefined) return promises;
    cursor = data.cursor;
  }
}
