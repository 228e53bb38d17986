/** Cards in the extension's own host, in a real browser, on a full stack with the conformance suite's jobs, which ask. */
import { stat } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { Codec } from "@resonatehq/sdk";
import type { Browser, Frame, FrameLocator, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { pagesFolder } from "../../cli/bundle/pages.ts";
import { until } from "../../testing/stack/program.ts";
import { inaccessible, NO_CANVAS, startBrowser, TEST_TIMEOUT_MS } from "../pages/browser.ts";
import { SEATTLE } from "../support/months.ts";
import { rpc } from "../support/rpc.ts";
import type { Stack } from "../support/stack.ts";
import { startTaskStack } from "../tasks/support.ts";
import type { Host, Opening } from "./host.ts";
import { type HostPage, serveHost } from "./page.ts";

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });

const browser: Browser | undefined = await startBrowser();

/** The folder for screenshots, if any are wanted. */
const PICTURES = process.env.CARD_PICTURES;

describe.runIf(browser)("a card in its host", () => {
  let stack: Stack;
  let host: HostPage;
  const requests: string[] = [];
  const complaints: string[] = [];
  beforeAll(async () => {
    host = await serveHost();
    stack = await startTaskStack({ bindings: { CORS_ORIGINS: host.origin } });
  });
  afterAll(async () => {
    await browser?.close();
    await stack?.[Symbol.asyncDispose]();
    await host?.[Symbol.asyncDispose]();
  });

  /** Opens a card in a host, as if a model had called its tool. */
  async function open(tool: string, args: Record<string, unknown>, more: Partial<Opening> = {}, script = "") {
    const context = await (browser as Browser).newContext({ viewport: { width: 640, height: 700 }, locale: "en-GB" });
    context.setDefaultTimeout(TEST_TIMEOUT_MS);
    await context.addInitScript(script);
    context.on("request", (request) => requests.push(request.url()));
    context.on("weberror", (error) => complaints.push(String(error.error())));
    const page = await context.newPage();
    page.on("console", (message) => message.type() === "error" && complaints.push(message.text()));
    await page.goto(host.origin);
    await page.waitForFunction("window.host");
    const opening = { url: stack.url, tool, args, ...more };
    const opened = page.evaluate((given) => (window as unknown as { host: Host }).host.open(given), opening);
    return { page, opened, card: page.frameLocator("iframe"), [Symbol.asyncDispose]: () => context.close() };
  }

  const status = (card: FrameLocator, words: string) => card.getByRole("status").filter({ hasText: words }).waitFor();
  /** The accessibility violations of the card, without those of its host. */
  const wrongWith = async (page: Page) => {
    const card = page.frames()[1] as Frame;
    // Within the frame, the check does not see the host's background, so the card gets the same one.
    const ground = await page.evaluate("getComputedStyle(document.body).backgroundColor");
    await card.evaluate(`document.documentElement.style.backgroundColor = "${ground}"`);
    return inaccessible(card);
  };
  const picture = async (page: Page, name: string) => {
    if (PICTURES !== undefined) await page.screenshot({ path: `${PICTURES}/${name}.png`, fullPage: true });
  };
  const calledBy = (page: Page) => page.evaluate(() => (window as unknown as { host: Host }).host.called);

  test("shows a running job and then the chart of its month, in the host's colors, even when they change", async () => {
    const month = { ...SEATTLE, year: 2013, month: 7 };
    stack.archive.control.inject({ fault: { kind: "status", status: 503 }, month: "2013-07" });
    await using opened = await open("start_gathering", month);
    const { page, card } = opened;
    await opened.opened;
    await card.getByText(/request: attempt \d+ failed.*503/).waitFor();
    await picture(page, "retrying");
    stack.archive.control.clear();
    await status(card, "Complete");
    await card.getByRole("img", { name: /^Chart of 2013-07-01 to 2013-07-31\. Temperature, highest from / }).waitFor();
    const colour = () => card.locator("body").evaluate((body) => getComputedStyle(body).color);
    expect(await colour()).toBe("rgb(20, 20, 20)");
    expect(await wrongWith(page)).toEqual([]);
    await picture(page, "month-light");
    await page.evaluate(() => (window as unknown as { host: Host }).host.theme("dark"));
    await until("the host's other colors", async () => (await colour()) === "rgb(240, 240, 240)", TEST_TIMEOUT_MS);
    const marks = () =>
      card.locator(".u-marker").evaluateAll((all) => all.map((one) => getComputedStyle(one).borderColor));
    await until(
      "the chart's other colors",
      async () => (await marks()).includes("rgb(240, 148, 111)"),
      TEST_TIMEOUT_MS,
    );
    expect(await wrongWith(page)).toEqual([]);
    await picture(page, "month-dark");
  });

  test("shows a result as a tree if its chart cannot be drawn", async () => {
    await using opened = await open("start_gathering", { ...SEATTLE, year: 2013, month: 7 }, {}, NO_CANVAS);
    await status(opened.card, "Complete");
    await opened.card.locator(".tree").first().waitFor();
    expect(await opened.card.locator(".chart").count()).toBe(0);
  });

  test("is the same for every tool, and reads the code of charts only if it is needed and its host allows it", async () => {
    const month = { ...SEATTLE, year: 2013, month: 7 };
    await using charted = await open("start_gathering", month);
    await charted.card.getByRole("img", { name: /^Chart of / }).waitFor();
    await using plain = await open("weather_data", month, { readsResources: false });
    await plain.card.locator(".tree").first().waitFor();
    await using timed = await open("set_timer", { timer_name: "no chart", seconds: 3_600 });
    await status(timed.card, "Running");
    const read = async ({ page }: { page: Page }) => (await calledBy(page)).filter((name) => name.startsWith("ui://"));
    const [card, chart] = await read(charted);
    expect(chart).toMatch(/chart\.js$/);
    expect([await read(plain), await read(timed)]).toEqual([[card], [card]]);
  });

  test("shows the chart of a whole range, which it reads in parts", async () => {
    await using opened = await open("weather_range", { ...SEATTLE, from: "2012-01", to: "2013-12" });
    await status(opened.card, "Complete");
    await opened.card.getByRole("img", { name: /^Chart of 2012-01-01 to 2013-12-31/ }).waitFor();
    await picture(opened.page, "range");
  });

  test("reads a result that is too large for it once, and says that it does not show it", async () => {
    await using opened = await open("set_timer", { timer_name: "large", seconds: 3_600 });
    await status(opened.card, "Running");
    // Quotes take more room in an answer, so that this has more parts than a card reads.
    const value = new Codec().encode(Array(240_000).fill("a"));
    await stack.resonate.call("promise.settle", { id: `${stack.namespace}timer_large`, state: "resolved", value });
    await status(opened.card, "Complete");
    const alert = opened.card.getByRole("alert").filter({ hasText: "The result is too large to be shown here." });
    await alert.waitFor();
    await setTimeout(4_000);
    const read = (await calledBy(opened.page)).filter((name) => name === "probe_status");
    expect([await alert.textContent(), read.length]).toEqual(["The result is too large to be shown here.", 40]);
    expect(await opened.card.locator(".tree").count()).toBe(0);
  });

  test("finds its job by the arguments of the call if its host was given a task", async () => {
    const args = { timer_name: "card/<b>tea</b>", seconds: 86_400 };
    await using opened = await open("timer", args, { as: "task" });
    await opened.opened;
    await opened.card.getByText("timer_card/<b>tea</b>").waitFor();
    await opened.card.getByText(/^23 h \d+ min$/).waitFor();
    await picture(opened.page, "timer");
    await opened.card.getByRole("button", { name: "Cancel" }).click();
    await opened.card.getByRole("button", { name: "Really cancel?" }).click();
    await status(opened.card, "Cancelled");
    expect(await calledBy(opened.page)).toEqual(expect.arrayContaining(["job_card", "cancel_job"]));
    const { result } = await rpc(stack.url, "tools/call", {
      name: "probe_status",
      arguments: { job_names: ["timer_card/<b>tea</b>"] },
    });
    expect(result.structuredContent.statuses).toMatchObject([{ status: "cancelled" }]);
  });

  test("lets its user answer a question that only the user may answer, and shows the job go on", async () => {
    await using opened = await open("confirm_delete", { filename: "report.pdf" }, { as: "task" });
    await status(opened.card, "Waiting for your answer");
    await opened.card.getByLabel("confirm").check();
    expect(await wrongWith(opened.page)).toEqual([]);
    await picture(opened.page, "question");
    await opened.card.getByRole("button", { name: "Answer" }).click();
    await status(opened.card, "Complete");
    await opened.card.getByText(/deleted/i).waitFor();
  });

  test("shows the refusal of an answer if its client does not declare that it shows cards", async () => {
    await using opened = await open("confirm_delete", { filename: "other.pdf" }, { as: "task", declares: false });
    await status(opened.card, "Waiting for your answer");
    await opened.card.getByRole("button", { name: "Answer" }).click();
    await opened.card.getByRole("alert").filter({ hasText: "does not say that it shows cards" }).waitFor();
  });

  test("shows that its host refuses a call, and works when the host allows it again", async () => {
    await using opened = await open(
      "set_timer",
      { timer_name: "refused", seconds: 3_600 },
      { refuses: ["cancel_job"] },
    );
    await status(opened.card, "Running");
    const cancel = async () => {
      await opened.card.getByRole("button", { name: "Cancel" }).click();
      await opened.card.getByRole("button", { name: "Really cancel?" }).click();
    };
    await cancel();
    await opened.card.getByRole("alert").filter({ hasText: "The user does not allow cancel_job" }).waitFor();
    await picture(opened.page, "refused");
    await opened.page.evaluate(() => (window as unknown as { host: Host }).host.refuse([]));
    await cancel();
    await status(opened.card, "Cancelled");
  });

  test("shows that it does not reach its server only while that is so", async () => {
    await using opened = await open("set_timer", { timer_name: "lost", seconds: 3_600 });
    await status(opened.card, "Running");
    const refuse = (tools: string[]) =>
      opened.page.evaluate((given) => (window as unknown as { host: Host }).host.refuse(given), tools);
    await refuse(["job_card"]);
    const alert = opened.card.getByRole("alert");
    await alert.filter({ hasText: "Not connected, trying again. The user does not allow job_card" }).waitFor();
    await refuse([]);
    await alert.waitFor({ state: "detached" });
  });

  test("loads nothing from elsewhere, violates no policy, and is small", async () => {
    const origins = new Set(requests.map((url) => new URL(url).origin));
    expect([...origins].filter((origin) => origin !== host.origin && origin !== stack.origin)).toEqual([]);
    expect(complaints).toEqual([]);
    expect((await stat(join(pagesFolder(), "card.html"))).size).toBeLessThan(60_000);
  });
});
