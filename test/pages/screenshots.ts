/**
 * `npm run screenshots` makes pictures of each page, light and dark, on a phone and on a wide screen, in `.build/screenshots`,
 * and copies the two that the README shows to `docs/images`.
 */
import { copyFile, mkdir } from "node:fs/promises";
import { join } from "node:path";
import { until } from "../../testing/stack/program.ts";
import { SEATTLE } from "../support/months.ts";
import { rpc } from "../support/rpc.ts";
import { startTaskStack } from "../tasks/support.ts";
import { startBrowser, visit } from "./browser.ts";

const OUT = ".build/screenshots";
const README = { "range-wide-light.png": "range.png", "question-phone-dark.png": "question.png" };

const browser = await startBrowser();
if (!browser) process.exit(1);
await using stack = await startTaskStack({ bindings: { RATE_LIMIT: "0" } });
const begin = (name: string, args: object) => rpc(stack.url, "tools/call", { name, arguments: args });
const status = async (name: string) => {
  const { result } = await rpc(stack.url, "tools/call", { name: "probe_status", arguments: { job_names: [name] } });
  return result.structuredContent.statuses[0];
};

const RANGE = { ...SEATTLE, from: "2013-01", to: "2014-12" };
const MONTH = { ...SEATTLE, year: 2014, month: 10 };
await begin("start_gathering", MONTH);
await begin("weather_range", RANGE);
await begin("failing_job", {});
await begin("confirm_delete", { filename: "reports/2013.pdf" });
await begin("set_timer", { timer_name: "tea", seconds: 200 });

const place = `${SEATTLE.latitude}_${SEATTLE.longitude}`;
const jobs: Record<string, string> = {
  month: `weather_data_${place}_2014_10`,
  range: `weather_range_${place}_2013-01_2014-12`,
  failed: "failing_job_once",
  question: "confirm_delete_reports/2013.pdf",
  timer: "timer_tea",
};
for (const name of ["month", "range", "failed"]) {
  await until(`${name} to end`, async () => (await status(jobs[name] ?? "")).status !== "running", 60_000);
}
await until("the question", async () => (await status(jobs.question ?? "")).waiting_for !== undefined, 60_000);

const paths = {
  front: "/",
  jobs: "/jobs",
  ...Object.fromEntries(Object.entries(jobs).map(([name, job]) => [name, `/jobs/${encodeURIComponent(job)}`])),
};
await mkdir(OUT, { recursive: true });
await mkdir("docs/images", { recursive: true });
for (const colorScheme of ["light", "dark"] as const) {
  for (const [size, width, height] of [
    ["phone", 390, 780],
    ["wide", 1200, 800],
  ] as const) {
    const viewport = { width, height };
    await using visitor = await visit(browser, stack.origin, {
      colorScheme,
      viewport,
      deviceScaleFactor: 1,
      reducedMotion: "reduce",
    });
    for (const [name, path] of Object.entries(paths)) {
      const page = await visitor.open(path);
      await page.locator(name === "front" ? "#tools" : name === "jobs" ? "table.jobs" : ".facts").waitFor();
      if (name === "month" || name === "range") await page.locator("canvas").waitFor();
      const file = join(OUT, `${name}-${size}-${colorScheme}.png`);
      await page.screenshot({ path: file });
      console.log(file);
      await page.close();
    }
  }
}
for (const [from, to] of Object.entries(README)) await copyFile(join(OUT, from), join("docs/images", to));
await browser.close();
