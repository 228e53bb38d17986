/** `backup`: all jobs and results of a deployment, or of this machine, to a file or to the deployment's bucket. */
import { parseArgs } from "node:util";
import { readArguments } from "../arguments.ts";
import { writeBackup } from "../backup/backup-file.ts";
import { OperatorClient } from "../backup/operator.ts";
import { openServer } from "../backup/servers.ts";
import { readProject, typed } from "../project.ts";
import { KEEPER_OPTIONS, keeperUsage } from "./kept-server.ts";

const usage =
  () => `Usage: ${typed(readProject(), "backup", "(--out FILE | --to-bucket) [--url https://HOST | --data DIR]")}

Writes down all that the account's own Resonate server, or the embedded one of this machine, keeps: jobs, their steps and
results, and the key that seals task ids. While it is read, the server rests: calls are told that they can be repeated.

  --out FILE   a file that only you may read
  --to-bucket  the deployment's bucket (R2, bound as BACKUPS), under a name that is printed
${keeperUsage(12)}
  --help       show this text
`;

export async function run(args: string[]): Promise<void> {
  const options = readArguments(() => {
    const own = { out: { type: "string" }, "to-bucket": { type: "boolean", default: false } } as const;
    const { values } = parseArgs({ args, options: { ...own, ...KEEPER_OPTIONS } });
    if (values.help) return undefined;
    if (values["to-bucket"] === (values.out !== undefined)) throw new Error("Give --out FILE or --to-bucket.");
    if (values["to-bucket"] && values.url === undefined) throw new Error("The bucket is the deployment's: give --url.");
    return values;
  }, usage());
  if (!options) return;
  const { out, url } = options;
  await using server = await openServer(options);
  if (out !== undefined) {
    const count = await writeBackup(out, server.head, server.pages());
    console.log(`${count} rows are in ${out}. It opens task ids and holds what jobs returned: keep it as a secret.`);
  } else if (url !== undefined) {
    const name = new Date().toISOString();
    const pages = await toBucket(new OperatorClient(url), name);
    console.log(`${pages} pages are in the bucket, under ${name}.`);
  }
}

/** A few pages with each request, until they are whole. */
async function toBucket(operator: OperatorClient, name: string): Promise<number> {
  for (let query = { name, page: "0" }; ; ) {
    const { pages, page, after } = await operator.ask("POST", "bucket", query);
    if (pages !== undefined) return pages;
    query = { name, page: String(page), ...{ after: JSON.stringify(after) } };
  }
}
