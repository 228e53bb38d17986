/** `jobs`: lists, by kind, jobs that are blocked, failing or waiting for an answer. */
import { parseArgs } from "node:util";
import PQueue from "p-queue";
import { activityIn, PausedJobs, ProgressFeeds } from "../../core/jobs/index.ts";
import { decodeValue, feedEntryId, getOf, isRoot, type PromiseRecord, pagesOf } from "../../core/resonate/index.ts";
import { flag, option, optionOr, usageOf, WrongArguments } from "../arguments.ts";
import { print } from "../terminal/print.ts";
import { SERVER_OPTIONS, type Server, withServer } from "./resonate-server.ts";

const OPTIONS = {
  kind: option("KIND", "only this kind"),
  group: option("GROUP", "jobs of this worker group (default RESONATE_GROUP, or else workers)"),
  most: optionOr("10000", "N", "the most jobs to examine (default 10000)"),
  json: flag("print it as JSON"),
  ...SERVER_OPTIONS,
};

export const usage = usageOf(
  "[options]",
  `Shows for each kind of job how many are under way, whether they are paused, and which are blocked (by code that does not
fit their journal), failing (and retried), or waiting for an answer. It searches the server, which needs an operator's token:
one that is limited to a namespace may not search.`,
  OPTIONS,
);

/** How many jobs are examined at once. */
const MAX_CONCURRENT_JOBS = 16;

const STATES = ["blocked", "failing", "asking"] as const;

interface Trouble {
  /** The job's name in logs. */
  job: string;
  kind: string;
  state: (typeof STATES)[number];
  /** The job's own description of its progress. */
  says: string;
}

interface Examination {
  /** How many jobs are under way, by kind. */
  running: Record<string, number>;
  trouble: Trouble[];
  /** Whether there may be jobs that were not examined. */
  more: boolean;
}

/** Examines the jobs under way. @throws {SearchRefused} */
async function examineJobs(
  { client, namespace, group }: Pick<Server, "client" | "namespace" | "group">,
  maxJobs: number,
  kindOption: string | undefined,
): Promise<Examination> {
  const result: Examination = { running: {}, trouble: [], more: false };
  const feeds = new ProgressFeeds(client);
  const queue = new PQueue({ concurrency: MAX_CONCURRENT_JOBS });
  const tags = { "resonate:target": `poll://any@${group}` };
  const examine = async (promise: PromiseRecord, kind: string) => {
    const { id } = promise;
    // One read is enough for a job that has reported no progress, as most have not.
    const first = await client.call(getOf(feedEntryId(id, 1)));
    const { entry } = first ? await feeds.newest(promise) : {};
    const isAsking = entry !== undefined && Object.keys(entry.questions).length > 0;
    const state = entry?.blocked !== undefined ? "blocked" : entry?.step?.error !== undefined ? "failing" : "asking";
    if (state === "asking" && !isAsking) return;
    result.trouble.push({ job: id.slice(namespace.length), kind, state, says: activityIn(entry, Date.now()) ?? "" });
  };
  let examinedCount = 0;
  for await (const page of pagesOf(client, { state: "pending", tags })) {
    result.more = examinedCount >= maxJobs;
    if (result.more) break;
    const jobs = page.flatMap((promise) => {
      const kind = kindOf(promise);
      const isOther = !promise.id.startsWith(namespace) || !isRoot(promise.id);
      return isOther || kind === undefined || (kindOption ?? kind) !== kind ? [] : [{ promise, kind }];
    });
    for (const { kind } of jobs) result.running[kind] = (result.running[kind] ?? 0) + 1;
    await queue.addAll(jobs.map((job) => () => examine(job.promise, job.kind)));
    examinedCount += jobs.length;
  }
  result.trouble.sort((a, b) => a.kind.localeCompare(b.kind) || STATES.indexOf(a.state) - STATES.indexOf(b.state));
  return result;
}

function kindOf({ param }: PromiseRecord): string | undefined {
  const { func } = (decodeValue(param) ?? {}) as { func?: unknown };
  return typeof func === "string" ? func : undefined;
}

export async function run(args: string[]): Promise<void> {
  const { values } = parseArgs({ args, options: OPTIONS });
  const { kind: kindOption, json } = values;
  const maxJobs = Number(values.most);
  if (!(maxJobs >= 1)) throw new WrongArguments("--most must be a number from 1 on.");
  const { all, more } = await withServer(values, async ({ client, namespace, group }) => {
    const server = { client, namespace, group: values.group ?? group };
    const { running, trouble, more } = await examineJobs(server, maxJobs, kindOption);
    const pauses = new PausedJobs(client, namespace);
    const kinds = [...new Set([...Object.keys(running), ...(kindOption === undefined ? [] : [kindOption])])].sort();
    const ofKind = async (kind: string) => {
      const pause = await pauses.find(kind);
      const own = trouble.filter((one) => one.kind === kind);
      return { kind, running: running[kind] ?? 0, paused_since: pause?.createdAt, trouble: own };
    };
    return { all: await Promise.all(kinds.map(ofKind)), more };
  });
  if (json) return print(JSON.stringify({ kinds: all, more }, undefined, 2));
  for (const { kind, running, paused_since, trouble } of all) {
    const counts = STATES.map((state) => `${trouble.filter((one) => one.state === state).length} ${state}`);
    const since = paused_since === undefined ? "" : `, paused since ${new Date(paused_since).toISOString()}`;
    print(`${kind}: ${running} under way, ${counts.join(", ")}${since}`);
    for (const { job, state, says } of trouble) print(`  ${state.padEnd(8)} ${job}: ${says}`);
  }
  if (all.length === 0) print("No job is under way.");
  if (more) print(`There are more than ${maxJobs}: --most examines more of them.`);
}
