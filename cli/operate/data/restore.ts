/** `restore`: loads a backup into an empty server, or sets a deployment back to an earlier time. */
import { existsSync } from "node:fs";
import { parseArgs } from "node:util";
import { option, usageOf, WrongArguments } from "../../arguments.ts";
import { copyFiles, filesBeside, type Line, readBackup, readHead } from "../../backup/backup-file.ts";
import { OperatorClient, Refused } from "../../backup/operator-client.ts";
import { openServer, SOURCE_OPTIONS } from "../../backup/paused-server.ts";
import { filesIn } from "../../launcher/data-directory.ts";
import { print } from "../../terminal/print.ts";

const OPTIONS = {
  from: option("FILE", "a file from `backup --out`"),
  "from-bucket": option("NAME", "a backup from `backup --to-bucket`"),
  time: option(
    "TIME",
    `a time within the last 30 days, such as 2026-11-22T10:00:00Z. Everything since then is undone; the
command prints a bookmark that restores it`,
  ),
  bookmark: option("B", "a bookmark that `restore --time` printed"),
  ...SOURCE_OPTIONS,
};

export const usage = usageOf(
  "(--from FILE | --from-bucket NAME | --time TIME | --bookmark B) [--url https://HOST | --data DIR]",
  "Loads a backup into a server without jobs, or sets the account's own server back to an earlier time.",
  OPTIONS,
);

export async function run(args: string[]): Promise<void> {
  const { values: options } = parseArgs({ args, options: OPTIONS });
  const { from, url, time, bookmark, "from-bucket": bucket } = options;
  if ([from, bucket, time, bookmark].filter(Boolean).length !== 1)
    throw new WrongArguments("Give --from, --from-bucket, --time or --bookmark.");
  if (from === undefined && url === undefined) throw new WrongArguments("Only a deployment has that: give --url.");
  if (time && Number.isNaN(Date.parse(time))) throw new WrongArguments(`${time} is not a time.`);
  if (url !== undefined && (time !== undefined || bookmark !== undefined)) {
    const to: Record<string, string> = time === undefined ? { bookmark: bookmark ?? "" } : { time };
    const { undo } = await new OperatorClient(url).ask("POST", "recover", to);
    print(`It is restored. To undo this: --bookmark ${undo}`);
    return;
  }
  const backup =
    from === undefined
      ? await inBucket(new OperatorClient(url ?? ""), bucket ?? "")
      : { head: await readHead(from), rows: readBackup(from) };
  await using server = await openServer(options, true);
  const count = await server.restore(backup.head, backup.rows);
  if (from !== undefined) await restoreFiles(filesBeside(from), url === undefined ? options.data : undefined);
  print(`${count} rows were restored. Jobs that were running continue where they were.`);
}

/** Restores the files of jobs beside a backup into the data directory. A deployment keeps its files elsewhere. */
async function restoreFiles(beside: string, data: string | undefined): Promise<void> {
  if (data !== undefined) await copyFiles(beside, filesIn(data));
  else if (existsSync(beside))
    print(`Files of jobs are in ${beside}: copy them to the deployment's folder or bucket (FILES_URL).`);
}

async function inBucket(operator: OperatorClient, name: string) {
  const { pages, key } = await operator.ask("GET", "bucket", { name, page: "whole" });
  async function* rows(): AsyncGenerator<Line> {
    for (let page = 0; page < pages; page++) yield* await operator.ask("GET", "bucket", { name, page: String(page) });
    for (let page = 0; ; page++) {
      const found = await operator.ask("GET", "bucket", { name, page: `callers/${page}` }).catch((error) => {
        if (!(error instanceof Refused && error.status === 404)) throw error;
      });
      if (!found) return;
      yield* found;
    }
  }
  return { head: { key }, rows: rows() };
}
