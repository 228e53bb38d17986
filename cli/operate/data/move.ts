/** `move`: moves all jobs from the account's own Resonate server, or the embedded one, to a standalone one. */
import { randomBytes } from "node:crypto";
import { mkdtemp, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import type { CallerRow } from "../../../core/jobs/index.ts";
import { checkSupport, ResonateClient, ServerRules } from "../../../core/resonate/index.ts";
import { addressIn, flag, option, usageOf, WrongArguments } from "../../arguments.ts";
import { batchesOf, readBackup, readHead, writeBackup } from "../../backup/backup-file.ts";
import { moveRows } from "../../backup/move-rows.ts";
import { OperatorClient } from "../../backup/operator-client.ts";
import { openServer, SOURCE_OPTIONS } from "../../backup/paused-server.ts";
import { commandLine, readProject } from "../../project.ts";
import { print } from "../../terminal/print.ts";

const OPTIONS = {
  to: option("URL", "the new server"),
  ...SOURCE_OPTIONS,
  from: option(
    "FILE",
    "instead of both: a file from `backup --out`, or without --to: the file that a move has printed",
  ),
  undo: flag("with --url: resume the deployment's own server, which pauses after a move, as if nothing had been moved"),
};

export const usage = usageOf(
  ["--to URL [--url https://HOST | --data DIR | --from FILE]", "--from FILE --url https://HOST"],
  `Moves all jobs to the Resonate server at URL. If that server requires a token, RESONATE_TOKEN must hold one for every
promise that is moved. First stop the workers, so that no step runs twice; then move; then point the edge and the workers to
the new server with the file that is printed. A move that was interrupted can be repeated.

  kept      names, arguments, results, errors; the steps that running jobs have done; deadlines, and when timers fire;
            questions
  not kept  start and end times: ended jobs count as ended now, for retention too. Task ids, which contain the start time:
            the same call returns a new one. The time that running jobs have seen (\`ctx.now()\`), which restarts at the move:
            one whose function depends on it may then be blocked, so let those jobs end first
  again     a step that was under way runs again, as after a crash

The second form is for the jobs of a machine, once the edge at https://HOST uses the new server: it takes there what belongs to
callers (events, subscriptions, schedules, their lists).`,
  OPTIONS,
);

export async function run(args: string[]): Promise<void> {
  const { values: options } = parseArgs({ args, options: OPTIONS });
  const { to: url = "", from } = options;
  if (options.undo) {
    if (options.url === undefined) throw new WrongArguments("--undo needs the deployment's --url.");
    await using _server = await openServer(options); // disposing of it resumes the server
    return print("It continues.");
  }
  if (options.to === undefined && from !== undefined && options.url !== undefined)
    return moveCallers(from, new OperatorClient(options.url));
  addressIn("--to", url);
  const token = process.env.RESONATE_TOKEN || undefined;
  const client = new ResonateClient({ url, token, timeout: 30_000 });
  const namespace = process.env.RESONATE_NAMESPACE ?? "";
  const unsupported = await checkSupport(client, namespace);
  if (unsupported) throw new Error(unsupported.message);

  const file = from ?? (await takeAll(options));
  const { key } = await readHead(file);
  const { ended, pending, running, schedules } = await moveRows(
    () => readBackup(file),
    client,
    new ServerRules(client, namespace),
  );
  const settings = join(await mkdtemp(join(tmpdir(), "moved-")), "edge.env");
  const lines = [
    `RESONATE_URL=${url}`,
    ...(token ? [`RESONATE_TOKEN=${token}`] : []),
    `TASK_KEY=${key ?? randomBytes(32).toString("hex")}`,
  ];
  await writeFile(settings, `${lines.join("\n")}\n`, { mode: 0o600 });
  print(`Moved to ${url}: ${ended} promises that had ended, ${pending} that wait, ${running} jobs that run.`);
  if (schedules > 0) print(`${schedules} schedules were not moved: make them there.`);
  print(`\nHave the edge use it: ${commandLine(readProject(), "deploy", `--secrets-file ${settings}`)}`);
  print("and start workers with its RESONATE_URL.");
  if (options.url === undefined)
    print(
      `Then take callers' events and subscriptions to that edge: ${commandLine(readProject(), "move", `--from ${file} --url URL`)}`,
    );
  print("Then remove that file.");
}

/** Writes the whole state to a file, and keeps the server paused from then on. Returns the file. */
async function takeAll(from: { url?: string | undefined; data: string }): Promise<string> {
  const file = join(await mkdtemp(join(tmpdir(), "move-")), "backup.ndjson");
  await using server = await openServer(from);
  await writeBackup(file, server.head, server.pages());
  await server.retire();
  print(`The previous state is also in ${file}; remove it when all is well.`);
  return file;
}

/** Writes what belongs to callers to the edge that uses the new server. */
async function moveCallers(file: string, edge: OperatorClient): Promise<void> {
  await readHead(file);
  const { isOwnServer } = await edge.callerRows(undefined);
  if (isOwnServer) throw new Error("This deployment keeps its jobs itself: `restore` takes the whole file there.");
  let count = 0;
  for await (const rows of batchesOf(callersIn(file))) {
    await edge.putCallerRows(rows);
    count += rows.length;
  }
  print(`${count} rows of callers were moved.`);
}

async function* callersIn(file: string): AsyncGenerator<CallerRow> {
  for await (const line of readBackup(file)) if ("caller" in line) yield line;
}
