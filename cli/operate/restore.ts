/** `restore`: what `backup` wrote, to a server that keeps nothing yet; or a deployment as it was at an earlier time. */
import { parseArgs } from "node:util";
import type { BackupRow } from "../../server/backup.ts";
import { readArguments } from "../arguments.ts";
import { readBackup, readHead } from "../backup/backup-file.ts";
import { OperatorClient } from "../backup/operator.ts";
import { openServer } from "../backup/servers.ts";
import { readProject, typed } from "../project.ts";
import { KEEPER_OPTIONS, keeperUsage } from "./kept-server.ts";

const usage =
  () => `Usage: ${typed(readProject(), "restore", "(--from FILE | --from-bucket NAME | --time TIME | --bookmark B) [--url https://HOST | --data DIR]")}

Takes up a backup, on a server that keeps no jobs yet, or sets the account's own server back to how it was at an earlier time.

  --from FILE         what \`backup --out\` wrote
  --from-bucket NAME  what \`backup --to-bucket\` wrote
  --time TIME         a time within the last 30 days, such as 2026-11-22T10:00:00Z: Cloudflare keeps the states of an object.
                      What happened since is undone; the answer has the bookmark that brings it back
  --bookmark B        such a bookmark
${keeperUsage(19)}
  --help              show this text
`;

export async function run(args: string[]): Promise<void> {
  const options = readArguments(() => {
    const backups = { from: { type: "string" }, "from-bucket": { type: "string" } } as const;
    const earlier = { time: { type: "string" }, bookmark: { type: "string" } } as const;
    const { values } = parseArgs({ args, options: { ...backups, ...earlier, ...KEEPER_OPTIONS } });
    if (values.help) return undefined;
    const given = [values.from, values["from-bucket"], values.time, values.bookmark].filter(Boolean);
    if (given.length !== 1) throw new Error("Give --from, --from-bucket, --time or --bookmark.");
    if (values.from === undefined && values.url === undefined)
      throw new Error("Only a deployment has that: give --url.");
    if (values.time && Number.isNaN(Date.parse(values.time))) throw new Error(`${values.time} is no time.`);
    return values;
  }, usage());
  if (!options) return;
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
  console.log(`${count} rows were taken up. Jobs that were running go on where they were.`);
}

const inFile = async (file: string) => ({ head: await readHead(file), rows: readBackup(file) });

async function inBucket(operator: OperatorClient, name: string) {
  const { pages, key } = await operator.ask("GET", "bucket", { name, page: "whole" });
  async function* rows(): AsyncGenerator<BackupRow> {
    for (let page = 0; page < pages; page++) yield* await operator.ask("GET", "bucket", { name, page: String(page) });
  }
  return { head: { key }, rows: rows() };
}
