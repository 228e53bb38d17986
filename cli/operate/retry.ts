/**
 * `retry JOB …`: has workers retry blocked jobs now, instead of at the end of the minute, and starts failed ones again from
 * their last good step.
 */
import { parseArgs } from "node:util";
import { REQUEST_TAG } from "../../core/definitions/job.ts";
import { doing } from "../../core/jobs/feed/progress-feed.ts";
import { ProgressFeeds } from "../../core/jobs/feed/progress-feeds.ts";
import { wakeupOf } from "../../core/jobs/unhandled.ts";
import { CLEANED_UP, EARLIER, encodeValue, lineage, RESERVATION } from "../../core/store/codec.ts";
import type { PromiseRecord } from "../../core/store/connection/protocol.ts";
import { cleanUpId, splitGeneration, withGeneration } from "../../core/store/ids.ts";
import { last } from "../../core/store/sequence.ts";
import { readArguments } from "../arguments.ts";
import { readProject, typed } from "../project.ts";
import { findServer, SERVER_OPTIONS, SERVER_USAGE, type Server, withServer } from "./resonate-server.ts";

export const usage = () => `Usage: ${typed(readProject(), "retry", "JOB … [options]")}

Has workers retry blocked jobs now. A job that failed, was cancelled or timed out is started again as its next attempt: with
the same arguments, and without the steps that it had finished, unless it recorded more after a failure, which may have
undone them. JOB is the name of a job in logs and in \`jobs\`.

${SERVER_USAGE}
  --help           show this text
`;

/** Starts the next attempt at a job that ended without a result; resolves with the outcome for the user. */
async function resume({ client, namespace }: Server, known: PromiseRecord): Promise<string> {
  const { base, generation } = splitGeneration(known.id);
  const idOf = (n: number) => withGeneration(base, n);
  const get = (n: number) => client.call({ kind: "promise.get", data: { id: idOf(n) } });
  const { n, entry: newest = known } = await last(get, { after: generation, entry: known });
  if (newest.state === "resolved") return "it is complete";
  if (n !== generation) return `a newer attempt is ${newest.id.slice(namespace.length)}: name that one`;
  const id = idOf(n + 1);
  const { [REQUEST_TAG]: _request, [RESERVATION]: _place, ...tags } = known.tags;
  const after = known.state === "rejected_canceled" && { [CLEANED_UP]: cleanUpId(known.id) };
  const data = {
    id,
    timeoutAt: Date.now() + known.timeoutAt - known.createdAt,
    param: known.param,
    tags: { ...tags, ...lineage(id), [EARLIER]: known.id, ...after },
  };
  await client.call({ kind: "promise.create", data });
  return `it is started again as ${id.slice(namespace.length)}`;
}

/** Wakes a blocked job, or starts a failed one again; resolves with the outcome for the user. */
async function retry(server: Server, job: string): Promise<string> {
  const { client, namespace } = server;
  const id = namespace + job;
  const promise = await client.call({ kind: "promise.get", data: { id } });
  if (!promise) return "there is no such job";
  if (promise.state !== "pending") return resume(server, promise);
  const { entry } = await new ProgressFeeds(client).newest(id);
  if (entry?.blocked === undefined)
    return `it is not blocked${entry ? `: ${doing(entry, Date.now()) ?? "it runs"}` : ""}`;
  // It sleeps until the end of this minute or, if it was blocked a moment ago, of the next one.
  const now = Date.now();
  for (const at of [now, now + 60_000]) {
    const bell = wakeupOf(id, at).id;
    const found = await client.call({ kind: "promise.get", data: { id: bell } });
    if (found?.state !== "pending") continue;
    await client.call({ kind: "promise.settle", data: { id: bell, state: "resolved", value: encodeValue(undefined) } });
    return "it is looked at again";
  }
  return "it is being looked at";
}

export async function run(args: string[]): Promise<void> {
  const options = readArguments(() => {
    const { values, positionals } = parseArgs({ args, allowPositionals: true, options: SERVER_OPTIONS });
    if (positionals.length === 0) throw new Error("Name the jobs.");
    return { jobs: positionals, server: findServer(values) };
  });
  await withServer(options.server, async (server) => {
    for (const job of options.jobs) console.log(`${job}: ${await retry(server, job)}`);
  });
}
