/** `backup`: writes all jobs and results of a deployment or of this machine to a file or the deployment's bucket. */
import { existsSync } from "node:fs";
import { rename, rm } from "node:fs/promises";
import { parseArgs } from "node:util";
import { flag, option, usageOf, WrongArguments } from "../../arguments.ts";
import { copyFiles, filesBeside, writeBackup } from "../../backup/backup-file.ts";
import { OperatorClient } from "../../backup/operator-client.ts";
import { openServer, SOURCE_OPTIONS } from "../../backup/paused-server.ts";
import { filesIn } from "../../launcher/data-directory.ts";
import { print } from "../../terminal/print.ts";

const OPTIONS = {
  out: option("FILE", "a file that only you can read"),
  "to-bucket": flag("the deployment's bucket (R2, bound as BACKUPS), under a name that is printed"),
  ...SOURCE_OPTIONS,
};

export const usage = usageOf(
  "(--out FILE | --to-bucket) [--url https://HOST | --data DIR]",
  `Writes the whole state of the account's own Resonate server, or of the embedded one of this machine: jobs, their steps and
results, what belongs to callers (events, subscriptions, their lists), and the key that seals task ids. The server pauses
meanwhile, and asks callers to repeat their calls. Files of jobs that DIR keeps are copied to FILE.files. Others are not in
it: copy their folder or bucket (FILES_URL) as well, afterwards.`,
  OPTIONS,
);

const WITHOUT_FILES =
  "Files of jobs are not in it, where jobs have stored any: copy their folder or bucket (FILES_URL) as well.";

export async function run(args: string[]): Promise<void> {
  const { values: options } = parseArgs({ args, options: OPTIONS });
  const { out, url, "to-bucket": toBucket } = options;
  if (toBucket === (out !== undefined)) throw new WrongArguments("Give --out FILE or --to-bucket.");
  if (toBucket && url === undefined) throw new WrongArguments("The bucket is the deployment's: give --url.");
  await using server = await openServer(options);
  if (out !== undefined) {
    const count = await writeBackup(out, server.head, server.pages());
    const hasFiles = url === undefined && (await replaceFiles(filesIn(options.data), filesBeside(out)));
    print(hasFiles ? `Files of jobs are in ${filesBeside(out)}.` : WITHOUT_FILES);
    if (!hasFiles && existsSync(filesBeside(out)))
      print(`${filesBeside(out)} stays as it is: it is of an earlier backup, or a copy of your own.`);
    print(`${count} rows are in ${out}. It opens task ids and holds what jobs returned: keep it as a secret.`);
  } else if (url !== undefined) {
    const name = new Date().toISOString();
    const operator = new OperatorClient(url);
    let n = 0;
    for await (const rows of operator.callerRowPages())
      await operator.ask("POST", "page", { name, page: `callers/${n++}` }, JSON.stringify(rows));
    const pages = n + (await writePages(operator, name));
    print(WITHOUT_FILES);
    print(`${pages} pages are in the bucket, under ${name}.`);
  }
}

/** Replaces the files of an earlier backup, which may be of jobs that were removed since. False if `from` does not exist. */
async function replaceFiles(from: string, to: string): Promise<boolean> {
  const [draft, old] = [`${to}.part`, `${to}.old`];
  const remove = (folder: string) => rm(folder, { recursive: true, force: true });
  await remove(draft);
  try {
    if (!(await copyFiles(from, draft))) return false;
    await remove(old);
    // One of the two is always whole.
    if (existsSync(to)) await rename(to, old);
    await rename(draft, to);
  } finally {
    await remove(draft);
  }
  await remove(old);
  return true;
}

/** Has the server write its pages to the bucket, a bounded number at each request. Returns the number of pages. */
async function writePages(operator: OperatorClient, name: string): Promise<number> {
  for (let query: Record<string, string> = { name, page: "0" }; ;) {
    const { pages, page, after } = await operator.ask("POST", "bucket", query);
    if (pages !== undefined) return pages;
    query = { name, page: String(page), after: JSON.stringify(after) };
  }
}
