/** The size of the pages, and the time until they show their content on a slow machine. */
import { randomUUID } from "node:crypto";
import { stat } from "node:fs/promises";
import { join } from "node:path";
import { buildPages, pagesFolder } from "../../../cli/bundle/pages.ts";
import { startBrowser } from "../../../test/pages/browser.ts";
import { PAGES, weightOf } from "../../../test/pages/weight.ts";
import { atMost, exactly, type Figure, figure, spreadOf } from "../report/figures.ts";
import type { Bench } from "../setup/bench.ts";

/** The slow machine is this many times slower. */
const SLOWER = 4;

/** The times of the first paint and of the chart, in milliseconds since the start of the visit. */
const SEEN = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime";

export async function measurePages(bench: Bench, rounds: number): Promise<Figure[]> {
  const weights = await Promise.all(PAGES.map(weightOf));
  const figures = PAGES.map((page, i) =>
    figure(`${page} and all that it loads, gzip`, "KB", exactly((weights[i] ?? 0) / 1_000), atMost(100)),
  );
  await buildPages();
  const weight = async (file: string) => exactly((await stat(join(pagesFolder(), file))).size / 1_000);
  figures.push(figure("a job's card in a chat, as its host reads it", "KB", await weight("card.html"), atMost(60)));
  figures.push(figure("what draws its chart", "KB", await weight("card-chart.js"), atMost(70)));
  const browser = await startBrowser();
  if (!browser) return figures;
  try {
    await using edge = await bench.serve("product");
    const name = `weather_data_47.6_-122.3_2013_5_${randomUUID()}`;
    const args = { latitude: 47.6, longitude: -122.3, year: 2013, month: 5 };
    await bench.resonate.start({ id: bench.namespace + name, func: "weather_data", args, group: bench.group });
    await bench.complete(name);
    const [painted, drawn]: [number[], number[]] = [[], []];
    for (let i = 0; i < rounds; i++) {
      const context = await browser.newContext({ locale: "en-GB" });
      const page = await context.newPage();
      const cpu = await context.newCDPSession(page);
      await cpu.send("Emulation.setCPUThrottlingRate", { rate: SLOWER });
      await page.goto(`${edge.url}/jobs/${name}`);
      await page.getByRole("img", { name: /^Chart/ }).waitFor();
      drawn.push(Number(await page.evaluate("performance.now()")));
      painted.push(Number(await page.evaluate(SEEN)));
      await context.close();
    }
    const slow = `of a job's page, CPU ${SLOWER} times slower`;
    return [
      ...figures,
      figure(`first paint ${slow}`, "ms", spreadOf(painted)),
      figure(`the chart ${slow}`, "ms", spreadOf(drawn)),
    ];
  } finally {
    await browser.close();
  }
}
