/**
 * Sends events about the ends of jobs to web hooks while every process is killed, and while receivers are slow, refuse, redirect,
 * hang and break off. Then compares each receiver's events with the jobs that its caller started:
 *
 *   npm run chaos:events -- [--jobs 5000] [--callers 20] [--seconds 240] [--seed N]
 *
 * Each receiver of a caller must have accepted every event of the caller, or be told of a gap, unless it answered 410. It must get
 * no event of another caller and no unsigned one, and equal events must have equal ids. Exits with 0 if all of this holds.
 */
import { randomInt } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import type { ServerResponse } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { parseArgs } from "node:util";
import { markdownTable } from "markdown-table";
import { bearerBindings, callerAt } from "../../test/auth/support.ts";
import { newSecret, startReceiver } from "../../test/events/receiver.ts";
import { eventsAt } from "../../test/events/support.ts";
import { Random } from "../../test/support/random.ts";
import { startStack } from "../../test/support/stack.ts";

/** How long the delivery of all events may take after the last fault, in milliseconds: a fifth attempt follows after seven minutes. */
const QUIET = 480_000;

/** The mean pause between two kills, in milliseconds. */
const BETWEEN = 8_000;

/** The share of the jobs that are cancelled. */
const CANCELLED = 0.1;

type Answer = (response: ServerResponse) => void;

/** How receivers of each kind sometimes answer in place of 204 until the faults are over. */
const HOSTILE: Readonly<Record<string, Answer>> = {
  good: (response) => response.writeHead(204).end(),
  slow: (response) => void setTimeout(() => response.writeHead(204).end(), 3_000),
  "500": (response) => response.writeHead(500).end(),
  "410": (response) => response.writeHead(410).end(),
  "413": (response) => response.writeHead(413).end(),
  redirects: (response) => response.writeHead(307, { location: "/elsewhere" }).end(),
  hangs: () => {},
  // It sends no status: after a 2xx the event would count as accepted.
  "breaks off": (response) => void response.destroy(),
};
const KINDS = Object.keys(HOSTILE);

const { values } = parseArgs({
  options: {
    jobs: { type: "string", default: "5000" },
    callers: { type: "string", default: "20" },
    seconds: { type: "string", default: "240" },
    seed: { type: "string", default: String(randomInt(2 ** 31)) },
  },
});
const [count, callerCount, seconds] = [values.jobs, values.callers, values.seconds].map(Number) as [
  number,
  number,
  number,
];
const random = new Random(Number(values.seed));
/** A random number from 0 to 1. */
const chance = () => random.int(0, 999_999) / 1_000_000;
console.log(`chaos:events --jobs ${count} --callers ${callerCount} --seconds ${seconds} --seed ${values.seed}`);

const data = await mkdtemp(join(tmpdir(), "chaos-events-"));
await using cleanup = new AsyncDisposableStack();
cleanup.defer(() => rm(data, { recursive: true, force: true }));
const VIEW_KEY = "v".repeat(32);
const tokens = Object.fromEntries(
  Array.from({ length: callerCount }, (_, n) => [`caller${n}`, `static-token-of-caller-${n}`]),
);
const env: Record<string, string> = { VIEW_KEY, LEASE_SECONDS: "5" };
const bindings = { ...bearerBindings(tokens), ALLOW_LOOPBACK_CALLBACKS: "1", VIEW_KEY, MAX_JOBS: "0" };
const stack = cleanup.use(await startStack({ own: { data }, workers: 0, env, bindings }));
env.EDGE_URL = stack.origin;
await Promise.all([stack.addWorker(), stack.addWorker()]);

let isOver = false;
const callers = await Promise.all(
  Object.entries(tokens).map(async ([name, token], n) => {
    await using client = await eventsAt(stack.url, token);
    const receivers = await Promise.all(
      ["good", KINDS[n % KINDS.length] as string].map(async (kind) => {
        const receiver = cleanup.use(await startReceiver(newSecret()));
        const accepted = new Set<string>();
        const refused = { "410": new Set<string>(), "413": new Set<string>() };
        /** The numbers of the last delivery that was refused as too large, and of the last accepted gap. */
        const last = { lost: -1, gap: -1 };
        receiver.state.answer = (response) => {
          const { body } = receiver.delivered.at(-1) as (typeof receiver.delivered)[0];
          const told: string = body.data?.job_name ?? body.type;
          const number = receiver.delivered.length;
          const isHostile = !isOver && chance() < 0.5;
          const answer = isHostile ? (HOSTILE[kind] as Answer) : (HOSTILE.good as Answer);
          if (!isHostile || kind === "good" || kind === "slow") {
            accepted.add(told);
            if (body.type === "gap") last.gap = number;
          } else if (kind === "410" || kind === "413") {
            refused[kind].add(told);
            if (kind === "413" && body.type === undefined) last.lost = number;
          }
          answer(response);
        };
        const delivery = { url: receiver.url, secret: receiver.secret };
        await client.request("events/subscribe", { name: "job.ended", delivery });
        return { ...receiver, kind, accepted, refused, last };
      }),
    );
    return { name, call: callerAt(stack.url, token).call, receivers, jobs: new Map<string, string>() };
  }),
);

const began = Date.now();
const until = began + seconds * 1_000;
/** Repeats a call that a kill has cut off. */
async function again<T>(call: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await call();
    } catch {
      await delay(300);
    }
  }
}
const starts = Array.from({ length: count }, async (_, n) => {
  const { call, name, jobs } = callers[n % callers.length] as (typeof callers)[0];
  const [at, isCancelled, length] = [chance() * 0.9, chance() < CANCELLED, 1 + chance() * 10];
  await delay(at * seconds * 1_000);
  const timer_name = `${name} ${n}`;
  const job = `timer_${timer_name}`;
  await again(() => call("set_timer", { timer_name, seconds: isCancelled ? 3_600 : length }));
  if (isCancelled) await again(() => call("cancel_job", { job_names: [job] }));
  jobs.set(job, isCancelled ? "cancelled" : "complete");
});
let kills = 0;
const parts = [stack.edge, stack.edge, stack.server, ...stack.workers];
while (Date.now() < until) {
  await delay(BETWEEN * (0.5 + chance()));
  const part = random.pick(parts);
  await part?.kill();
  await delay(chance() * 1_000);
  await part?.start();
  kills += 1;
}
await Promise.all(starts);
isOver = true;
console.log(`${count} jobs started in ${seconds} s, ${kills} kills; waiting for what is not told yet`);

const all = callers.flatMap(({ name, jobs, receivers }) => receivers.map((receiver) => ({ name, jobs, ...receiver })));
type Receiver = (typeof all)[0];
const isTold = ({ accepted, refused }: Receiver, job: string) => accepted.has(job) || refused["410"].has(job);
const missing = (receiver: Receiver) => [...receiver.jobs.keys()].filter((job) => !isTold(receiver, job));
/** Whether a receiver has all its events. A later gap stands for those that were too large; no others are given up in this time. */
const isComplete = (receiver: Receiver) =>
  missing(receiver).every((job) => receiver.refused["413"].has(job)) && receiver.last.gap >= receiver.last.lost;
const quietFrom = Date.now();
while (!all.every(isComplete) && Date.now() < quietFrom + QUIET) await delay(1_000);
await delay(2_000);
console.log(`all was told ${Math.round((Date.now() - quietFrom) / 1_000)} s after the last fault`);

const rows: string[][] = [];
const violations: string[] = [];
for (const kind of KINDS) {
  const those = all.filter((receiver) => receiver.kind === kind);
  const sums = { events: 0, deliveries: 0, doubles: 0, refused: 0, gaps: 0, missing: 0 };
  for (const receiver of those) {
    const { name, jobs, delivered, forged, refused } = receiver;
    const events = delivered.filter(({ body }) => body.type === undefined);
    const idOf = new Map<string, Set<string>>();
    for (const { id, body } of events) {
      const { job_name, status } = body.data;
      idOf.set(job_name, (idOf.get(job_name) ?? new Set()).add(id));
      const expected = jobs.get(job_name);
      if (expected === undefined) violations.push(`${name} (${kind}) was told of ${job_name}, which it did not start`);
      else if (expected !== status) violations.push(`${job_name} is ${status} to ${name} (${kind}), not ${expected}`);
    }
    for (const [job, ids] of idOf) if (ids.size > 1) violations.push(`${job} has ${ids.size} event ids`);
    const unsigned = forged.filter((text) => text.includes(`timer_${name} `)).length;
    if (unsigned > 0) violations.push(`${unsigned} deliveries to ${name} (${kind}) are not signed`);
    if (!isComplete(receiver)) violations.push(`${name} (${kind}) was not told of ${missing(receiver).join(", ")}`);
    if (kind === "good" && missing(receiver).length > 0) violations.push(`${name}: a gap for a good receiver`);
    sums.events += jobs.size;
    sums.deliveries += events.length;
    sums.doubles += events.length - idOf.size;
    sums.refused += refused["410"].size + refused["413"].size;
    sums.gaps += delivered.filter(({ body }) => body.type === "gap").length;
    sums.missing += missing(receiver).length;
  }
  rows.push([kind, String(those.length), ...Object.values(sums).map(String)]);
}
const heads = ["kind", "receivers", "events", "deliveries", "of them again", "refused", "gaps told", "not accepted"];
console.log(markdownTable([heads, ...rows]));
for (const violation of violations.slice(0, 50)) console.log(violation);
console.log(violations.length === 0 ? "Nothing is wrong." : `${violations.length} violations`);
await cleanup.disposeAsync();
process.exit(violations.length === 0 ? 0 : 1);
