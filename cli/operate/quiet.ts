/** `quiet`: what jobs of earlier versions sleep on is offered to nobody any more. */
import { parseArgs } from "node:util";
import PQueue from "p-queue";
import { ResonateRefused, SearchRefused } from "../../core/store/failures.ts";
import { isRoot } from "../../core/store/ids.ts";
import type { PromiseRecord } from "../../core/store/protocol.ts";
import { readArguments } from "../arguments.ts";
import { readProject, typed } from "../project.ts";
import { SERVER_OPTIONS, SERVER_USAGE, type Server, serverOf, withServer } from "../server-of.ts";

const usage = () => `Usage: ${typed(readProject(), "quiet", "[options]")}

Halts what jobs of earlier versions sleep on. They addressed each sleep to a group that nobody is of, so that the server offers it
again and again until it is over. A sleep that is halted ends when it would have, and wakes its job; no other is touched. Once,
after an upgrade, is enough. It searches the server, which a token that is limited to a namespace may not: an operator's may.

  --group GROUP    jobs of this worker group (default RESONATE_GROUP, or else workers)
${SERVER_USAGE}
  --help           show this text
`;

/** What earlier versions addressed sleeps to. */
const NOBODY = "poll://any@default";

/** How many sleeps are halted at once: there may be tens of thousands, and other requests beside them. */
const AT_ONCE = 8;

/** Halts the sleeps of jobs of the group that are offered. Returns how many. @throws {SearchRefused} */
async function halt({ client, namespace, group }: Server): Promise<number> {
  const queue = new PQueue({ concurrency: AT_ONCE });
  const get = (id: string) => client.call({ kind: "promise.get", data: { id } });
  const isOurs = async (sleep: PromiseRecord | undefined) => {
    if (sleep?.tags["resonate:timer"] !== "true" || sleep.tags["resonate:target"] !== NOBODY) return false;
    const job = await get(sleep.tags["resonate:origin"] ?? "");
    return job?.tags["resonate:target"] === `poll://any@${group}`;
  };
  let halted = 0;
  let cursor: string | undefined;
  do {
    const page = await offered({ client, cursor });
    // A sleep is a part of its job.
    const ids = page.tasks.map(({ id }) => id).filter((id) => id.startsWith(namespace) && !isRoot(id));
    await queue.addAll(
      ids.map((id) => async () => {
        if (!(await isOurs(await get(id)))) return;
        // It may be over since.
        if ((await client.send("task.halt", { id }, { origin: id })).status === 200) halted += 1;
      }),
    );
    cursor = page.cursor ?? undefined;
  } while (cursor !== undefined);
  return halted;
}

/** Some of the tasks that are offered to workers. */
async function offered({ client, cursor }: Pick<Server, "client"> & { cursor: string | undefined }) {
  const search = { state: "pending", limit: 500, ...(cursor !== undefined && { cursor }) } as const;
  const answer = await client.send("task.search", search).catch((error) => {
    throw error instanceof ResonateRefused && error.status === 403 ? new SearchRefused() : error;
  });
  if (answer.status !== 200) throw new Error(`The Resonate server answered ${answer.status} to a search for tasks.`);
  return answer.data;
}

export async function run(args: string[]): Promise<void> {
  const read = () => {
    const options = { ...SERVER_OPTIONS, group: { type: "string" }, help: { type: "boolean" } } as const;
    const { values } = parseArgs({ args, options });
    if (values.help) return undefined;
    const server = serverOf(values);
    return { ...server, group: values.group ?? server.group };
  };
  const server = readArguments(read, usage());
  if (!server) return;
  const halted = await withServer(server, halt);
  console.log(`${halted} sleeps of earlier versions are offered no more.`);
}
