/**
 * Ten ordinary callers: alone, beside a hostile caller that uses all its limits, and beside the same requests to a server that only
 * reads them, since the hostile caller's requests also load this machine. Runs on the embedded server and through `wrap`, on the
 * object, and on each standalone server of the PATH (`resonate`, `resonate-next`).
 *
 *   npm run load -- --hostile [--seconds 25] [--on embedded,wrap,object,resonate,resonate-next]
 *
 * Exits with 0 if no call of the ordinary callers failed, and no kind of their calls took more than 1.5 times as long as beside
 * that other server.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { execa } from "execa";
import { startStandaloneServer } from "../../../test/support/standalone-server.ts";
import { runHostile } from "../hostile.ts";
import { number, summary } from "./tables.ts";

/** The largest ratio of an ordinary call's medians: beside the hostile caller to beside the same requests elsewhere. */
const MOST = 1.5;

const KINDS = ["embedded", "wrap", "object", "resonate", "resonate-next"];

export async function run(): Promise<number> {
  const on = { type: "string", default: KINDS.join(",") } as const;
  const options = { hostile: { type: "boolean" }, seconds: number(25), on, one: { type: "string" } } as const;
  const { values } = parseArgs({ options });
  const seconds = Number(values.seconds);
  if (values.one !== undefined) return runOne(values.one, seconds);
  const wrong: string[] = [];
  for (const kind of values.on.split(",")) if (!(await passes(kind, seconds))) wrong.push(kind);
  console.log(wrong.length === 0 ? "\nAll is well." : `\nNot well on: ${wrong.join(", ")}.`);
  return wrong.length === 0 ? 0 : 1;
}

/** Runs one kind in a separate process, whose environment names the server; resolves with whether it passed. */
async function passes(kind: string, seconds: number): Promise<boolean> {
  console.log(`\n${kind}:`);
  const spawn = async (env: Record<string, string>) => {
    const args = ["lab/load/kinds.ts", "--hostile", "--one", kind, "--seconds", String(seconds)];
    return !(await execa(process.execPath, args, { env, stdio: "inherit", reject: false })).failed;
  };
  if (kind === "object") return spawn({ RESONATE_HOST: "object" });
  if (kind === "embedded" || kind === "wrap") return spawn({});
  const { stdout: path, failed: isMissing } = await execa("which", [kind], { reject: false });
  if (isMissing) {
    console.log(`${kind} is not on the PATH: nothing ran on it.`);
    return true;
  }
  const data = await mkdtemp(join(tmpdir(), "hostile-"));
  await using server = await startStandaloneServer(path, data);
  return await spawn({ RESONATE_URL: server.url }).finally(() => rm(data, { recursive: true, force: true }));
}

async function runOne(kind: string, seconds: number): Promise<number> {
  const isWrapped = kind === "wrap";
  const { alone, elsewhere, beside, failed, hostile } = await runHostile({ seconds, isWrapped, say: console.log });
  const ratio = (what: string, to: Record<string, number[]>) =>
    Number(summary(beside[what]).p50) / Number(summary(to[what]).p50);
  const rows = Object.keys(alone).map((what) => {
    const ways = Object.entries({ alone, elsewhere, beside }).map(([way, all]) => {
      const { p50, p99, samples = 0 } = summary(all[what]);
      return [way, `${p50}, ${p99} (${samples})`];
    });
    const times = { "of alone": ratio(what, alone).toFixed(2), "of elsewhere": ratio(what, elsewhere).toFixed(2) };
    return [what, { ...Object.fromEntries(ways), ...times }];
  });
  console.log("Milliseconds: p50, p99 (samples)");
  console.table(Object.fromEntries(rows));
  console.log("Answers to the hostile caller");
  console.table(hostile);
  for (const what of failed.slice(0, 10)) console.log(`Failed: ${what}`);
  // A kind of call that was never answered counts as late, too.
  const late = Object.keys(alone).filter((what) => !(ratio(what, elsewhere) <= MOST));
  for (const what of late) console.log(`Later than ${MOST} times: ${what}`);
  return rows.length > 0 && failed.length + late.length === 0 ? 0 : 1;
}
