/** `backup`: writes all jobs and results of a deployment or of this machine to a file or the deployment's bucket. */
import { parseArgs } from "node:util";
import { readArguments } from "../../arguments.ts";
import { copyFiles, filesBeside, writeBackup } from "../../backup/backup-file.ts";
import { OperatorClient } from "../../backup/operator-client.ts";
import { openServer } from "../../backup/paused-server.ts";
import { SOURCE_OPTIONS, sourceUsage } from "../../backup/server-options.ts";
import { filesIn } from "../../launcher/data-directory.ts";
import { readProject, typed } from "../../project.ts";

export const usage =
  () => `Usage: ${typed(readProject(), "backup", "(--out FILE | --to-bucket) [--url https://HOST | --data DIR]")}

Writes the whole state of the account's own Resonate server, or of the embedded one of this machine: jobs, their steps and
results, what belongs to callers (events, subscriptions, their lists), and the key that seals task ids. The server pauses meanwhile, and tells callers to repeat their calls.
Files of jobs that DIR keeps are copied to FILE.files. Others are not in it: copy their folder or bucket (FILES_URL) as well,
afterwards.

  --out FILE   a file that only you can read
  --to-bucket  the deployment's bucket (R2, bound as BACKUPS), under a name that is printed
${sourceUsage(12)}
  --help       show this text
`;

const WITHOUT_FILES =
  "Files of jobs are not in it, where jobs have stored any: copy their folder or bucket (FILES_URL) as well.";

export async function run(args: string[]): Promise<void> {
  const options = readArguments(() => {
    const own = { out: { type: "string" }, "to-bucket": { type: "boolean", default: false } } as const;
    const { values } = parseArgs({ args, options: { ...own, ...SOURCE_OPTIONS } });
    if (values["to-bucket"] === (values.out !== undefined)) throw new Error("Give --out FILE or --to-bucket.");
    if (values["to-bucket"] && values.url === undefined) throw new Error("The bucket is the deployment's: give --url.");
    return values;
  });
  const { out, url } = options;
  await using server = await openServer(options);
  if (out !== undefined) {
    const count = await writeBackup(out, server.head, server.pages());
    if (!server.hasJobs)
      console.log("The jobs are in the database of the Resonate server, which has a backup of its own.");
    const hasFiles = url === undefined && (await copyFiles(filesIn(options.data), filesBeside(out)));
    console.log(hasFiles ? `Files of jobs are in ${filesBeside(out)}.` : WITHOUT_FILES);
    console.log(`${count} rows are in ${out}. It opens task ids and holds what jobs returned: keep it as a secret.`);
  } else if (url !== undefined) {
    const name = new Date().toISOString();
    const operator = new OperatorClient(url);
    let n = 0;
    for await (const rows of operator.roomPages())
      await operator.ask("POST", "page", { name, page: `rooms/${n++}` }, JSON.stringify(rows));
    const pages = n + (await toBucket(operator, name));
    console.log(WITHOUT_FILES);
    console.log(`${pages} pages are in the bucket, under ${name}.`);
  }
}

/** Has the server write some pages per request, until all are written. */
async function toBucket(operator: OperatorClient, name: string): Promise<number> {
  for (let query = { name, page: "0" }; ; ) {
    const { pages, page, after } = await operator.ask("POST", "bucket", query);
    if (pages !== undefined) return pages;
    query = { name, page: String(page), ...{ after: JSON.stringify(after) } };
  }
}
