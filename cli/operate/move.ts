/** `move`: from the account's own Resonate server, or the embedded one, to a real one. */
import { randomBytes } from "node:crypto";
import { mkdtemp, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { ResonateClient } from "../../core/store/client.ts";
import { checkSupport } from "../../core/store/support.ts";
import { readArguments } from "../arguments.ts";
import { readBackup, readHead, writeBackup } from "../backup/backup-file.ts";
import { moveRows } from "../backup/move-rows.ts";
import { openServer } from "../backup/servers.ts";
import { readProject, typed } from "../project.ts";
import { KEEPER_OPTIONS, keeperUsage } from "./kept-server.ts";

const usage = () => `Usage: ${typed(readProject(), "move", "--to URL [--url https://HOST | --data DIR | --from FILE]")}

Moves all jobs to the Resonate server at URL (its token, where it asks for one, in RESONATE_TOKEN; one that may name every
promise that is moved). It goes in this order: stop the workers, so that no step is under way twice; move; have edge and
workers use the new server, by the file that is printed. It can be repeated, and goes on where it ended.

  kept      names, arguments, results, errors; the steps that running jobs have done; deadlines, and when timers fire;
            questions
  not kept  when a job began and ended: what has ended, ended now, and is kept from now on. Ids of tasks, which say when
            their job began: the same call gives a new one
  again     a step that was under way is done again, as after a crash

${keeperUsage(12)}
  --from FILE  in place of both: what \`backup --out\` wrote
  --undo       with --url: the deployment's own server, which rests once all is moved, goes on as if nothing had been moved
  --help       show this text
`;

export async function run(args: string[]): Promise<void> {
  const options = readArguments(() => {
    const own = {
      to: { type: "string" },
      from: { type: "string" },
      undo: { type: "boolean", default: false },
    } as const;
    const { values } = parseArgs({ args, options: { ...own, ...KEEPER_OPTIONS } });
    if (values.help) return undefined;
    if (values.undo && values.url === undefined) throw new Error("--undo needs the deployment's --url.");
    if (!values.undo && !/^https?:\/\/./.test(values.to ?? "")) throw new Error("--to needs the new server's address.");
    return values;
  }, usage());
  if (!options) return;
  if (options.undo) {
    await using _server = await openServer(options); // goes on when it is closed
    return console.log("It goes on.");
  }
  const { to: url = "", from } = options;
  const token = process.env.RESONATE_TOKEN || undefined;
  const client = new ResonateClient({ url, token, timeout: 30_000 });
  const unsupported = await checkSupport(client, process.env.RESONATE_NAMESPACE ?? "");
  if (unsupported) throw new Error(unsupported.words);

  const file = from ?? (await takeAll(options));
  const { key } = await readHead(file);
  const { ended, pending, running, schedules } = await moveRows(() => readBackup(file), client);
  const settings = join(await mkdtemp(join(tmpdir(), "moved-")), "edge.env");
  const lines = [
    `RESONATE_URL=${url}`,
    ...(token ? [`RESONATE_TOKEN=${token}`] : []),
    `TASK_KEY=${key ?? randomBytes(32).toString("hex")}`,
  ];
  await writeFile(settings, `${lines.join("\n")}\n`, { mode: 0o600 });
  console.log(`Moved to ${url}: ${ended} promises that had ended, ${pending} that wait, ${running} jobs that run.`);
  if (schedules > 0) console.log(`${schedules} schedules were not moved: make them there.`);
  console.log(`\nHave the edge use it: ${typed(readProject(), "deploy", `--secrets-file ${settings}`)}`);
  console.log("and start workers with its RESONATE_URL. Then remove that file.");
}

/** All that is there, in a file; the server that it was on rests from then on. */
async function takeAll(from: { url?: string | undefined; data: string }): Promise<string> {
  const file = join(await mkdtemp(join(tmpdir(), "move-")), "backup.ndjson");
  await using server = await openServer(from);
  await writeBackup(file, server.head, server.pages());
  await server.retire();
  console.log(`What was there is in ${file} as well; remove it when all is well.`);
  return file;
}
