/** What a stack's Resonate server knows of its jobs. */
import { setTimeout as sleep } from "node:timers/promises";
import { pagesOf, type ResonateClient, type Search } from "../../core/resonate/index.ts";

/** Whether no job runs or is about to run: every job sleeps, waits or has finished. */
async function isIdle(client: ResonateClient): Promise<boolean> {
  const answers = await Promise.all(
    (["pending", "acquired"] as const).map((state) => client.send("task.search", { state, limit: 1 })),
  );
  return answers.every((answer) => answer.status === 200 && answer.data.tasks.length === 0);
}

/** Waits up to `ms` real milliseconds until no job runs; resolves with whether that came about. */
export async function becomesIdle(client: ResonateClient, ms: number): Promise<boolean> {
  for (const deadline = performance.now() + ms; ;) {
    if (await isIdle(client)) return true;
    if (performance.now() >= deadline) return false;
    await sleep(10);
  }
}

/** The first time after `now` at which a pending promise times out, in milliseconds since the epoch. */
export async function nextTimeout(client: ResonateClient, now: number): Promise<number | undefined> {
  let next: number | undefined;
  for await (const { timeoutAt } of promises(client, { state: "pending" })) {
    if (timeoutAt > now && timeoutAt < (next ?? Number.POSITIVE_INFINITY)) next = timeoutAt;
  }
  return next;
}

/** The id of a job whose id begins with `name`. */
export async function findJob(client: ResonateClient, name: string): Promise<string | undefined> {
  for await (const { id, tags } of promises(client, {})) {
    if (tags["resonate:target"] !== undefined && id.startsWith(name)) return id;
  }
  return undefined;
}

async function* promises(client: ResonateClient, search: Search) {
  for await (const page of pagesOf(client, search)) yield* page;
}
