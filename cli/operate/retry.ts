/** `retry JOB …`: looks at blocked jobs again now, and not after the minute that they are left alone for. */
import { parseArgs } from "node:util";
import { doing } from "../../core/jobs/feed/progress-feed.ts";
import { ProgressFeeds } from "../../core/jobs/feed/progress-feeds.ts";
import { wakeupOf } from "../../core/jobs/unhandled.ts";
import { encodeValue } from "../../core/store/codec.ts";
import { readArguments } from "../arguments.ts";
import { readProject, typed } from "../project.ts";
import { SERVER_OPTIONS, SERVER_USAGE, type Server, serverOf, withServer } from "../server-of.ts";

const usage = () => `Usage: ${typed(readProject(), "retry", "JOB … [options]")}

Has workers look at blocked jobs again now. JOB is a job as logs and \`jobs\` name it.

${SERVER_USAGE}
  --help           show this text
`;

/** Wakes a blocked job up; what became of it, in words. */
async function retry({ client, namespace }: Server, job: string): Promise<string> {
  const id = namespace + job;
  const promise = await client.call({ kind: "promise.get", data: { id } });
  if (!promise) return "there is no such job";
  if (promise.state !== "pending") return "it has ended";
  const { entry } = await new ProgressFeeds(client).newest(id);
  if (entry?.blocked === undefined)
    return `it is not blocked${entry ? `: ${doing(entry, Date.now()) ?? "it runs"}` : ""}`;
  // It sleeps until the end of this minute or, when it was blocked in the last moment, of the next one.
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
  const read = () => {
    const options = { ...SERVER_OPTIONS, help: { type: "boolean" } } as const;
    const { values, positionals } = parseArgs({ args, allowPositionals: true, options });
    if (values.help) return undefined;
    if (positionals.length === 0) throw new Error("Name the jobs.");
    return { jobs: positionals, server: serverOf(values) };
  };
  const options = readArguments(read, usage());
  if (!options) return;
  await withServer(options.server, async (server) => {
    for (const job of options.jobs) console.log(`${job}: ${await retry(server, job)}`);
  });
}
