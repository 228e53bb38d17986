/** An incident in a real browser: from the alert to the cause, and to a retry of all jobs. */
import { mkdir } from "node:fs/promises";
import type { Browser, Route } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { until } from "../../testing/stack/program.ts";
import { callerAt } from "../auth/support.ts";
import { inaccessible, poll, startBrowser, visit } from "../pages/browser.ts";
import { SEATTLE } from "../support/months.ts";
import type { Stack } from "../support/stack.ts";
import { operatorAt, startOperated } from "./support.ts";

vi.setConfig({ testTimeout: 150_000, hookTimeout: 150_000 });

const browser: Browser | undefined = await startBrowser();

describe.runIf(browser)("in a browser", () => {
  let stack: Stack;
  beforeAll(async () => {
    stack = await startOperated();
  });
  afterAll(async () => {
    await browser?.close();
    await stack?.[Symbol.asyncDispose]();
  });

  test("an operator gets from the alert to the cause and retries all jobs", async () => {
    const caller = callerAt(stack.url, "");
    const months = [1, 2, 3, 4, 5, 6].map((month) => ({ ...SEATTLE, year: 2013, month }));
    await caller.call("set_timer", { timer_name: "tea", seconds: 3_600 });
    await caller.call("start_gathering", { ...SEATTLE, year: 2015, month: 1 });
    await caller.call("await_result", { job_names: [`weather_data_${SEATTLE.latitude}_${SEATTLE.longitude}_2015_1`] });
    stack.archive.control.inject({ fault: { kind: "status", status: 404, reason: "the archive has moved" } });
    const names: string[] = [];
    for (const month of months) names.push((await caller.call("start_gathering", month)).job_name);
    const operator = operatorAt(stack.origin);
    await until("the alert", async () => (await operator.get("overview")).alerts.length > 0 || undefined);
    await until("the failures", async () => (await operator.get("jobs")).count === months.length || undefined);

    const pictures = process.env.PICTURES;
    if (pictures) await mkdir(pictures, { recursive: true });
    await using visitor = await visit(browser as Browser, stack.origin);
    const page = await visitor.open("/operate");
    await page.getByRole("alert").getByText("many jobs fail: 6 of weather_data").waitFor();
    await page.getByRole("img", { name: /^Chart of .* Complete/ }).waitFor();
    await page.getByText("1 of timer").waitFor();
    expect(await inaccessible(page)).toEqual([]);
    if (pictures) await page.screenshot({ path: `${pictures}/operate.png` });
    // A paused kind can be resumed here, even if it has no jobs now.
    await operator.act({ do: "pause", of: { kind: "weather_range" } });
    const paused = page.getByRole("region", { name: "Paused and blocked" });
    await paused.getByText("weather_range").waitFor();
    await paused.getByRole("button", { name: "Resume" }).click();
    await paused.waitFor({ state: "detached" });
    await page.getByRole("link", { name: /the archive has moved/ }).click();
    await page.getByRole("heading", { name: /^6 jobs/ }).waitFor();

    const job = await visitor.open(`/operate#job=${encodeURIComponent(names[0] ?? "")}`);
    await job.getByRole("heading", { name: "Stack" }).waitFor();
    await job.getByText("open-meteo").first().waitFor();
    expect(await job.getByText("latitude").count()).toBe(0);
    await job.getByRole("button", { name: "Show them" }).click();
    await job.getByText("latitude").first().waitFor();
    expect(await inaccessible(job)).toEqual([]);
    if (pictures) await job.screenshot({ path: `${pictures}/operate-job.png`, fullPage: true });

    stack.archive.control.clear();
    if (pictures) await page.screenshot({ path: `${pictures}/operate-bulk.png` });
    await page.getByRole("button", { name: "Try 6 jobs again", exact: true }).click();
    await page.getByText("Done: 6 of 6.").waitFor();
    const { results } = await caller.call("await_result", { job_names: names.map((name) => `${name}~2`) });
    expect(Object.keys(results)).toHaveLength(6);
    await page.getByRole("link", { name: "Audit log" }).click();
    await page.getByText("values read").waitFor();
    await page.getByRole("rowheader", { name: /^retry: done/ }).waitFor();
    if (pictures) await page.screenshot({ path: `${pictures}/operate-audit-log.png`, fullPage: true });
    expect([...visitor.complaints]).toEqual([]);

    // A link that was cut off on its way.
    const cut = await visitor.open("/operate#jobs=%7B%22state%22%3A%22failed");
    await cut.getByRole("heading", { name: "Kinds" }).waitFor();
    expect([...visitor.complaints]).toEqual([]);

    const phone = { viewport: { width: 390, height: 780 }, colorScheme: "dark" as const };
    await using small = await visit(browser as Browser, stack.origin, phone);
    const onPhone = await small.open("/operate");
    await onPhone.getByRole("heading", { name: "Kinds" }).waitFor();
    expect(await onPhone.evaluate("document.documentElement.scrollWidth <= innerWidth")).toBe(true);
    if (pictures) await onPhone.screenshot({ path: `${pictures}/operate-phone.png`, fullPage: true });
  });

  test("the page of a job shows a lost connection only while it is lost, and requests nothing while it is hidden", async () => {
    await callerAt(stack.url, "").call("set_timer", { timer_name: "lost", seconds: 3_600 });
    await using visitor = await visit(browser as Browser, stack.origin);
    const page = await visitor.open("/operate#job=timer_lost");
    await page.getByRole("heading", { name: "Journal" }).waitFor();
    await page.route(/operate\/job/, (route) => route.abort());
    const notice = page.getByText("Failed to fetch");
    await poll(page);
    await notice.waitFor();
    await page.unroute(/operate\/job/);
    await poll(page);
    await notice.waitFor({ state: "detached" });
    await page.getByRole("heading", { name: "Journal" }).waitFor();
    await page.evaluate(`Object.defineProperty(document, "visibilityState", { value: "hidden" })`);
    const before = visitor.requests.length;
    await page.waitForTimeout(6_000);
    expect(visitor.requests.slice(before)).toEqual([]);
  });

  test("the overview stays while its server refuses too many requests or fails", async () => {
    await using visitor = await visit(browser as Browser, stack.origin);
    const page = await visitor.open("/operate");
    const now = page.getByRole("heading", { name: "Now" });
    await now.waitFor();
    const choose = (span: string) => page.getByLabel("Span").selectOption(span);
    for (const [status, span, next] of [
      [429, "day", "week"],
      [503, "hour", "day"],
    ] as const) {
      await page.route(/operate\/overview/, (route) => route.fulfill({ status, json: { error: "Not now." } }));
      await choose(span);
      await page.getByText("Connection lost").waitFor();
      expect(await now.count()).toBe(1);
      await page.unroute(/operate\/overview/);
      await choose(next);
      await page.getByText("Connection lost").waitFor({ state: "detached" });
    }
  });

  test("an overview that nobody waits for any more may fail", async () => {
    await using visitor = await visit(browser as Browser, stack.origin);
    const page = await visitor.open("/operate");
    const choose = (span: string) => page.getByLabel("Span").selectOption(span);
    await choose("day");
    const held = Promise.withResolvers<Route>();
    await page.route(/overview\?span=hour/, held.resolve);
    await choose("hour");
    const route = await held.promise;
    const read = page.waitForResponse(/overview\?span=week/);
    await choose("week");
    await read;
    const failed = page.waitForEvent("requestfailed");
    await route.abort();
    await failed;
    await page.waitForTimeout(500);
    expect(await page.getByText("Connection lost").count()).toBe(0);
  });
});
