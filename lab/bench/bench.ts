/** `npm run bench`: compares the product's costs with their lower bounds, which are measured in the same run. */
import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { measureAwait } from "./measure/awaiting.ts";
import { measureCeiling } from "./measure/ceiling.ts";
import { measureAwake } from "./measure/cost/awake.ts";
import { measureBudgets } from "./measure/cost/budgets.ts";
import { measureRows } from "./measure/cost/rows.ts";
import { measureEdits } from "./measure/dev.ts";
import { measureGrowth } from "./measure/growth.ts";
import { measureGuard } from "./measure/guard.ts";
import { measureHosts } from "./measure/hosts.ts";
import { measureJobs } from "./measure/jobs.ts";
import { measureMalformed } from "./measure/malformed.ts";
import { measureHeldStreams, measureServed, measureWaiting } from "./measure/memory.ts";
import { measurePages } from "./measure/pages.ts";
import { measureRecovery } from "./measure/recovery.ts";
import { prepareRequests, type Summary, summarize } from "./measure/requests.ts";
import { measurePolling, measureSettlement } from "./measure/settlement.ts";
import { measureBundle, measureStartup } from "./measure/startup.ts";
import { measureWebHooks } from "./measure/web-hooks.ts";
import { type Options, parseOptions, type Section, USAGE } from "./options.ts";
import { measurePeer } from "./peer/peer.ts";
import { addBudgets, overBudget, readBudgets, withBudgets } from "./report/budgets.ts";
import type { Figure } from "./report/figures.ts";
import { fallenRatios, readRecorded, record } from "./report/recorded.ts";
import { describeRun, type Report, render } from "./report/report.ts";
import { type Bench, startBench } from "./setup/bench.ts";
import { measureWrapped } from "./wrapped/wrapped.ts";

const OUT = join(import.meta.dirname, "../../.build/bench.json");

const FIGURES: Record<Exclude<Section, "requests">, (bench: Bench, short: boolean) => Promise<Figure[]>> = {
  ceiling: (bench) => measureCeiling(bench, 5),
  bundle: measureBundle,
  pages: (bench) => measurePages(bench, 5),
  startup: (bench) => measureStartup(bench, 10),
  budgets: measureBudgets,
  rows: measureRows,
  malformed: measureMalformed,
  settlement: async (bench) => [...(await measureSettlement(bench, 100)), ...(await measurePolling(bench, 10))],
  hooks: (bench) => measureWebHooks(bench, 100),
  waiting: async (bench) => [...(await measureWaiting(bench)), ...(await measureHeldStreams(bench))],
  jobs: (bench) => measureJobs(bench, 4),
  guard: measureGuard,
  recovery: measureRecovery,
  hosts: () => measureHosts(),
  wrapped: (bench, short) => measureWrapped(bench, short ? 1 : 4),
  awake: measureAwake,
  dev: () => measureEdits(5),
  await: (bench) => measureAwait(bench, 7),
  peer: (bench) => measurePeer(bench, 5),
  growth: (bench) => measureGrowth(bench, 8, 0.3),
};

const log = (text: string) => console.error(text);

async function main({ short, sections, seconds, out, ...options }: Options): Promise<number> {
  if (process.platform !== "linux")
    throw new Error("This reads the usage of processes from /proc, which only Linux has.");
  const run = await describeRun();
  const start = performance.now();
  await using bench = await startBench();
  const resonate = bench.resonate.program ? "embedded" : "external";
  const figures: Figure[] = [];
  const requests: Summary[] = [];
  const worse: string[] = [];
  const recorded = short ? await readRecorded() : undefined;

  async function measureRequests(): Promise<void> {
    await using use = new AsyncDisposableStack();
    const measured = await prepareRequests(bench, { seconds, short }, use);
    await measured.measure(short ? 3 : 8);
    if (recorded?.resonate === resonate) worse.push(...(await fallenRatios(recorded, measured, log)));
    else if (recorded)
      log(`Not compared: the recorded ratios were measured with an ${recorded.resonate} Resonate server.`);
    requests.push(...measured.pairs.map(summarize));
    if (!short) figures.push(...(await measureServed(bench, measured)));
  }

  for (const section of sections) {
    log(`${((performance.now() - start) / 1_000).toFixed(0).padStart(4)} s  ${section}`);
    if (section === "requests") await measureRequests();
    else figures.push(...(await FIGURES[section](bench, short)));
  }
  const budgets = await readBudgets();
  for (const { message, fails } of overBudget(budgets, figures)) {
    if (fails && short) worse.push(message);
    else log(message);
  }

  const report: Report = {
    ...run,
    form: short ? "short" : "full",
    resonate,
    seconds: (performance.now() - start) / 1_000,
    requests,
    figures: withBudgets(budgets, figures),
  };
  console.log(`\n${render(report)}\n`);
  for (const file of [OUT, ...(out === undefined ? [] : [out])]) {
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, `${JSON.stringify(report, undefined, 2)}\n`);
    log(`Written to ${file}`);
  }
  if (options.record) await Promise.all([record(report), addBudgets(figures)]);
  for (const what of worse) log(`Worse than it was. ${what}`);
  return worse.length > 0 ? 1 : 0;
}

function readOptions(): Options {
  try {
    return parseOptions(process.argv.slice(2));
  } catch (error) {
    console.error(`${(error as Error).message}\n\n${USAGE}`);
    process.exit(2);
  }
}

const options = readOptions();
if (options.help) console.log(USAGE);
else process.exitCode = await main(options);
