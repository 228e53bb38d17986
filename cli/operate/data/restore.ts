/** `restore`: loads a backup into an empty server, or sets a deployment back to an earlier time. */
import { existsSync } from "node:fs";
import { parseArgs } from "node:util";
import { readArguments } from "../../arguments.ts";
import { copyFiles, filesBeside, type Line, readBackup, readHead } from "../../backup/backup-file.ts";
import { OperatorClient } from "../../backup/operator-client.ts";
import { openServer } from "../../backup/paused-server.ts";
import { SOURCE_OPTIONS, sourceUsage } from "../../backup/server-options.ts";
import { filesIn } from "../../launcher/data-directory.ts";
import { readProject, typed } from "../../project.ts";

export const usage =
  () => `Usage: ${typed(readProject(), "restore", "(--from FILE | --from-bucket NAME | --time TIME | --bookmark B) [--url https://HOST | --data DIR]")}

Loads a backup into a server without jobs, or sets the account's own server back to an earlier time.

  --from FILE         a file from \`backup --out\`
  --from-bucket NAME  a backup from \`backup --to-bucket\`
  --time TIME         a time within the last 30 days, such as 2026-11-22T10:00:00Z. Everything since then is undone; the
                      command prints a bookmark that restores it
  --bookmark B        a bookmark that \`restore --time\` printed
${sourceUsage(19)}
  --help              show this text
`;

export async function run(args: string[]): Promise<void> {
  const options = readArguments(() => {
    const backups = { from: { type: "string" }, "from-bucket": { type: "string" } } as const;
    const earlier = { time: { type: "string" }, bookmark: { type: "string" } } as const;
    const { values } = parseArgs({ args, options: { ...backups, ...earlier, ...SOURCE_OPTIONS } });
    const given = [values.from, values["from-bucket"], values.time, values.bookmark].filter(Boolean);
    if (given.length !== 1) throw new Error("Give --from, --from-bucket, --time or --bookmark.");
    if (values.from === undefined && values.url === undefined)
      throw new Error("Only a deployment has that: give --url.");
    if (values.time && Number.isNaN(Date.parse(values.time))) throw new Error(`${values.time} is no time.`);
    return values;
  });
  const { from, url, time, bookmark } = options;
  if (url !== undefined && (time !== undefined || bookmark !== undefined)) {
    const to: Record<string, string> = time === undefined ? { bookmark: bookmark ?? "" } : { time };
    const { undo } = await new OperatorClient(url).ask("POST", "recover", to);
    console.log(`It is as it was. What it was before that: --bookmark ${undo}`);
    return;
  }
  const bucket = options["from-bucket"];
  const backup = from === undefined ? await inBucket(new OperatorClient(url ?? ""), bucket ?? "") : await inFile(from);
  await using server = await openServer(options);
  const count = await server.restore(backup.head, backup.rows);
  if (from !== undefined) await restoreFiles(filesBeside(from), url === undefined ? options.data : undefined);
  if (!server.hasJobs) console.log("The jobs are restored with the database of the Resonate server.");
  console.log(`${count} rows were taken up. Jobs that were running go on where they were.`);
}

/** Takes up the files of jobs that lie beside a backup; a deployment keeps them elsewhere. */
async function restoreFiles(beside: string, data: string | undefined): Promise<void> {
  if (data !== undefined) await copyFiles(beside, filesIn(data));
  else if (existsSync(beside))
    console.log(`Files of jobs are in ${beside}: copy them to the deployment's folder or bucket (FILES_URL).`);
}

const inFile = async (file: string) => ({ head: await readHead(file), rows: readBackup(file) });

async function inBucket(operator: OperatorClient, name: string) {
  const { pages, key } = await operator.ask("GET", "bucket", { name, page: "whole" });
  async function* rows(): AsyncGenerator<Line> {
    for (let page = 0; page < pages; page++) yield* await operator.ask("GET", "bucket", { name, page: String(page) });
    for (let page = 0; ; page++) {
      const found = await operator.ask("GET", "bucket", { name, page: `rooms/${page}` }).catch((error: Error) => {
        if (!error.message.includes("has no")) throw error;
      });
      if (!found) return;
      yield* found;
    }
  }
  return { head: { key }, rows: rows() };
}
