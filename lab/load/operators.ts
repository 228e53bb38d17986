/**
 * `node lab/load/operators.ts [--jobs 1000000]`: the cost of the operators' overview after many jobs were reported. Sends workers'
 * reports to a real edge, each of a thousand jobs of ten kinds, with fifty failed and fifty waiting jobs by name. No job is run.
 * Prints how long reports and overviews take, and the number of stored rows.
 */
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { parseArgs } from "node:util";
import { reportToken } from "../../core/jobs/index.ts";
import { operatorAt, startOperated } from "../../test/operate/support.ts";

const { values } = parseArgs({ options: { jobs: { type: "string", default: "1000000" } } });
const [PER, KINDS, NAMED] = [1_000, 10, 50];

const objects = await mkdtemp(join(tmpdir(), "operators-"));
const bindings: Record<string, string> = {};
{
  await using stack = await startOperated({ workers: 0, objects, bindings });
  const authorization = `Bearer ${await reportToken(bindings.VIEW_KEY ?? "")}`;
  const operator = operatorAt(stack.origin);
  const kinds = Array.from({ length: KINDS }, (_, i) => `kind_${i}`);
  const each = PER / KINDS;

  const report = async (n: number) => {
    const of = (i: number, what: string) => ({ job: `${kinds[i % KINDS]}_${what}_${n}_${i}`, kind: kinds[i % KINDS] });
    const many = <T>(make: (i: number) => T) => Array.from({ length: NAMED }, (_, i) => make(i));
    const worker = {
      worker: `worker ${n % 10}`,
      n,
      group: "workers",
      connected: true,
      slots: { running: 1, waiting: 0, most: 9 },
      kinds: Object.fromEntries(kinds.map((kind) => [kind, 1])),
      counts: kinds.flatMap((kind) => [
        ...[
          [kind, "started", each],
          [kind, "complete", each - 5],
          [kind, "failed", 5],
          [kind, "ms", 5_000],
        ],
        [kind, `failed: the reason ${n % 7}`, 5],
      ]),
      failed: many((i) => ({ ...of(i, "failed"), reason: `the reason ${n % 7}`, at: Date.now() })),
      waits: many((i) => ({ ...of(i, "waits"), state: "sleeping" })),
      slowest: kinds.map((kind) => [kind, `${kind}_slow_${n}`, n]),
    };
    const headers = { "content-type": "application/json", authorization };
    const body = JSON.stringify({ worker });
    const { status } = await fetch(`${stack.origin}/reports`, { method: "POST", headers, body });
    if (status !== 204) throw new Error(`a report was answered ${status}`);
  };

  const timed = async (times: number, work: (n: number) => Promise<unknown>): Promise<string> => {
    const all: number[] = [];
    for (let n = 1; n <= times; n++) {
      const began = performance.now();
      await work(n);
      all.push(performance.now() - began);
    }
    all.sort((a, b) => a - b);
    const at = (part: number) => `${(all[Math.floor((all.length - 1) * part)] ?? 0).toFixed(1)} ms`;
    return `p50 ${at(0.5)}, p99 ${at(0.99)}`;
  };

  console.log(`overview of nothing: ${await timed(50, () => operator.get("overview"))}`);
  const reports = Number(values.jobs) / PER;
  console.log(`${reports} reports of ${PER} jobs: each ${await timed(reports, report)}`);
  for (const span of ["hour", "day", "week"])
    console.log(`overview of the ${span}: ${await timed(100, () => operator.get("overview", { span }))}`);
  const { kinds: seen } = await operator.get("overview");
  const sum = seen.reduce((n: number, { started }: { started: number }) => n + started, 0);
  console.log(`jobs in it: ${sum.toLocaleString("en")}; one request, answered by one object`);
}
for (const file of await readdir(objects, { recursive: true })) {
  if (!file.endsWith(".sqlite")) continue;
  const db = new DatabaseSync(join(objects, file), { readOnly: true });
  const tables = db
    .prepare("SELECT name FROM sqlite_master WHERE type = 'table'")
    .all()
    .map(({ name }) => String(name));
  if (tables.includes("counts"))
    for (const name of ["counts", "failures", "waits", "slowest", "workers", "audit"])
      console.log(`rows of ${name}: ${db.prepare(`SELECT count(*) AS n FROM ${name}`).get()?.n}`);
  db.close();
}
await rm(objects, { recursive: true, force: true });
