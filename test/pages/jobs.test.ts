/** The list of jobs in a real browser, with downloads and schedules, and what holds for all pages. */
import { readFile } from "node:fs/promises";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { childOf } from "../../core/resonate/codec.ts";
import { journalEntryId } from "../../core/resonate/ids.ts";
import { until } from "../../testing/stack/program.ts";
import { SEATTLE } from "../support/months.ts";
import { rpc } from "../support/rpc.ts";
import { inaccessible, poll, startBrowser, TEST_TIMEOUT_MS, type Visitor } from "./browser.ts";
import { foreignRequests, jobPath, type Site, startSite, waitForState } from "./site.ts";

const browser: Browser | undefined = await startBrowser();

const JULY = { ...SEATTLE, year: 2014, month: 7 };

describe.runIf(browser)("the list of jobs", () => {
  let site: Site;
  beforeAll(async () => {
    site = await startSite(browser as Browser);
  });
  afterAll(() => site?.[Symbol.asyncDispose]());

  test("the list shows new jobs, finds jobs by name, and links to them", async () => {
    const page = await site.visitor.open("/jobs");
    await site.call("set_timer", { timer_name: "in the list", seconds: 3_600 });
    await page.getByRole("link", { name: "timer_in the list" }).waitFor();
    await page.getByLabel("Search").fill("no such job");
    await page.getByText("None of the jobs").waitFor();
    await page.getByLabel("Search").fill("the list");
    await page.getByRole("link", { name: "timer_in the list" }).click();
    await waitForState(page, "running");
    await page.close();
  });

  /** Lets a visitor's pages of lists have three jobs, and counts the requests for them. `refuses` may answer them itself. */
  const listsOfThree = async (own: Visitor, refuses = () => 0) => {
    const cursors: (string | undefined)[] = [];
    await own.context.route(`${site.stack.origin}/mcp`, async (route) => {
      const message = route.request().postDataJSON();
      if (message.params.name !== "list_jobs") return route.continue();
      message.params.arguments.limit = 3;
      cursors.push(message.params.arguments.cursor);
      const status = refuses();
      if (status > 0) return route.fulfill({ status, json: { error: "refused", error_description: "Not now." } });
      return route.continue({ postData: JSON.stringify(message) });
    });
    return cursors;
  };

  test("the list reads older jobs when asked, and then continues to read the newest", async () => {
    const names = Array.from({ length: 12 }, (_, n) => `paged ${n}`);
    for (const timer_name of names) await site.call("set_timer", { timer_name, seconds: 3_600 });
    await using own = await site.visit();
    const cursors = await listsOfThree(own);
    const page = await own.open("/jobs");
    const rows = page.locator("table.jobs tbody tr");
    for (const count of [3, 6, 9]) {
      await until(`${count} jobs`, async () => (await rows.count()) === count, TEST_TIMEOUT_MS);
      await page.getByRole("button", { name: "Read older jobs" }).click();
    }
    await until("12 jobs", async () => (await rows.count()) === 12, TEST_TIMEOUT_MS);
    cursors.length = 0;
    await site.call("set_timer", { timer_name: "newest", seconds: 3_600 });
    await page.getByRole("link", { name: "timer_newest" }).waitFor();
    await page.waitForTimeout(12_000);
    expect(cursors.length).toBeLessThanOrEqual(5);
    const listed = (await rows.locator("a").allTextContents()).map((name) => name.replace(/^timer_/, ""));
    expect(listed).toEqual(["newest", ...names.toReversed()]);
  });

  test("the list keeps its jobs and its search while too many requests are refused", async () => {
    for (const timer_name of ["kept", "hidden by the search"])
      await site.call("set_timer", { timer_name, seconds: 3_600 });
    await using own = await site.visit();
    let status = 0;
    await listsOfThree(own, () => status);
    const page = await own.open("/jobs");
    await page.getByLabel("Search").fill("kept");
    const link = page.getByRole("link", { name: "timer_kept" });
    await link.waitFor();
    for (status of [429, 503]) {
      await poll(page);
      await page.getByText("Connection lost").waitFor();
      expect([await link.count(), await page.getByLabel("Search").inputValue()]).toEqual([1, "kept"]);
      status = 0;
      await poll(page);
      await page.getByText("Connection lost").waitFor({ state: "detached" });
    }
    status = 403;
    await poll(page);
    await page.getByRole("alert").filter({ hasText: "Not now." }).waitFor();
    expect(await link.count()).toBe(1);
  });

  test.each([
    '<img src=x onerror="document.title=1">',
    "a/b?c=d#e",
    "';--</script><script>document.title=1</script>",
    "日本 🌧",
  ])("a timer named %s has that name on every page", async (timer_name) => {
    const { job_name } = await site.call("set_timer", { timer_name, seconds: 3_600 });
    const page = await site.visitor.open("/jobs");
    await page.getByRole("link", { name: job_name, exact: true }).click();
    await waitForState(page, "running");
    expect(await page.getByRole("heading", { level: 1 }).textContent()).toContain(job_name);
    expect(await page.title()).toBe(`running: ${job_name}`);
    expect(await page.locator("main img, main script").count()).toBe(0);
    await page.close();
  });

  test.each(["light", "dark"] as const)(
    "every page can be used with a screen reader and the keyboard, in %s",
    async (colorScheme) => {
      await site.begin("open_question", { name: "accessible" });
      const { job_name } = await site.call("start_gathering", JULY);
      await site.call("await_result", { job_names: [job_name] });
      await using own = await site.visit({ colorScheme, reducedMotion: "reduce" });
      const pages: [path: string, there: string][] = [
        ["/", "#tools"],
        ["/jobs", "table.jobs"],
        [jobPath(job_name), "canvas"],
        [jobPath("open_question_accessible"), "section.question input"],
        [jobPath("timer_no such"), ".notice.error"],
      ];
      for (const [path, there] of pages) {
        const page = await own.open(path);
        await page.locator(there).first().waitFor();
        expect([path, ...(await inaccessible(page))]).toEqual([path]);
        await page.keyboard.press("Tab");
        expect(await page.evaluate("document.activeElement?.className")).toBe("skip");
        await page.close();
      }
    },
  );

  test("a viewer downloads all stored jobs, and removes the ended ones", async () => {
    for (const timer_name of ["goes on", "has ended"]) await site.call("set_timer", { timer_name, seconds: 3_600 });
    await site.call("cancel_job", { job_names: ["timer_has ended"] });
    const { job_name } = await site.call("start_gathering", JULY);
    await site.call("await_result", { job_names: [job_name] });
    const page = await site.visitor.open("/jobs");
    const savedFile = page.waitForEvent("download");
    // A job that is removed between its listing and its reading is left out.
    await page.route(/pages\/job\?name=timer_has/, (route) => route.fulfill({ status: 404, json: { error: "None." } }));
    await page.getByRole("button", { name: "Download all" }).click();
    const jobs = JSON.parse(await readFile(await (await savedFile).path(), "utf8"));
    expect(jobs.map((each: { job_name: string }) => each.job_name)).not.toContain("timer_has ended");
    const month = jobs.find((each: { job_name: string }) => each.job_name === job_name);
    expect(month).toMatchObject({ status: "complete", args: JULY, result: { daily: { time: expect.any(Array) } } });
    expect(month.timeline.length).toBeGreaterThan(0);
    page.on("dialog", (dialog) => dialog.accept());
    await page.getByRole("button", { name: "Remove ended jobs" }).click();
    await page.getByText(/^\d+ jobs are removed\. \d+ are not yours alone, and stay\.$/).waitFor();
    await page.getByRole("link", { name: "timer_has ended" }).waitFor({ state: "detached" });
    for (const name of ["timer_goes on", job_name]) await page.getByRole("link", { name, exact: true }).waitFor();
    expect(await site.call("probe_status", { job_names: ["timer_has ended"] })).toMatchObject({
      statuses: [{ status: "not_found" }],
    });
    await page.close();
  });

  test("a timeline of many records is shown and downloaded whole, also past a sleep that has not ended", async () => {
    const { job_name } = await site.call("set_timer", { timer_name: "many records", seconds: 3_600 });
    const id = (n: number) => journalEntryId(`${site.stack.namespace}${job_name}`, n);
    const write = (n: number, entry: object, until: number) => {
      const { kind, data } = childOf(id(n), until, { param: entry, tags: { "resonate:timer": "true" } });
      return site.stack.resonate.call(kind, data);
    };
    const steps = Array.from({ length: 301 }, (_, i) => i + 1).filter((n) => n !== 2);
    await Promise.all(steps.map((n) => write(n, { kind: "step", op: `step ${n}` }, Date.now() - 1)));
    await write(2, { kind: "sleep", op: "nap" }, Date.now() + 3_600_000);
    const page = await site.visitor.open(jobPath(job_name));
    await page.getByRole("button", { name: "Show 289 more before these" }).click();
    const nap = page.locator(".timeline li", { hasText: "nap" });
    await nap.filter({ hasText: "sleeps until" }).waitFor();
    await site.stack.resonate.call("promise.settle", { id: id(2), state: "resolved", value: {} });
    await poll(page);
    await nap.filter({ hasText: "slept until" }).waitFor();
    await page.goto(`${site.stack.origin}/jobs`);
    const savedFile = page.waitForEvent("download");
    await page.getByRole("button", { name: "Download all" }).click();
    const jobs = JSON.parse(await readFile(await (await savedFile).path(), "utf8"));
    const { timeline } = jobs.find((each: { job_name: string }) => each.job_name === job_name);
    expect(timeline.map(({ n }: { n: number }) => n)).toEqual(Array.from({ length: 301 }, (_, i) => i + 1));
    await page.close();
  });

  test("a result that is stored in parts is downloaded whole, alone and with all jobs", async () => {
    const { job_name } = await site.call("start_gathering", JULY);
    await site.call("await_result", { job_names: [job_name] });
    await using own = await site.visit();
    await own.context.route(/pages\/job\?/, async (route) => {
      const response = await route.fetch();
      const job = await response.json();
      const result = { "durable-mcp:parts": { id: "a", text: "{", characters: 1e6 } };
      await route.fulfill({ response, json: job.job_name === job_name ? { ...job, result } : job });
    });
    const savedFile = async (path: string, button: string) => {
      const page = await own.open(path);
      const [file] = await Promise.all([
        page.waitForEvent("download"),
        page.getByRole("button", { name: button }).click(),
      ]);
      return JSON.parse(await readFile(await file.path(), "utf8"));
    };
    const result = { daily: { time: expect.any(Array) } };
    expect(await savedFile(jobPath(job_name), "Download JSON")).toMatchObject(result);
    const all = await savedFile("/jobs", "Download all");
    expect(all.find((each: { job_name: string }) => each.job_name === job_name)).toMatchObject({ result });
    // A job that is removed while its parts are read is left out.
    await own.context.route("**/mcp", async (route) => {
      if (!route.request().postData()?.includes('"probe_status"')) return route.continue();
      await own.context.route(/pages\/job\?/, (gone) => gone.fulfill({ status: 404, json: { error: "None." } }));
      await route.fulfill({ json: { jsonrpc: "2.0", id: 1, result: { isError: true, content: [] } } });
    });
    const others = await savedFile("/jobs", "Download all");
    expect(others.map((each: { job_name: string }) => each.job_name)).not.toContain(job_name);
  });

  test("the list shows schedules and clients that listen, and ends a schedule", async () => {
    const listens = { name: "job.ended", cursor: null, arguments: { kinds: ["timer"] } };
    await rpc(site.stack.url, "events/poll", listens);
    const tea = JSON.stringify({ timer_name: "seen", seconds: 1 });
    const cron = { name: "nightly", cron: "0 3 * * *", tool: "set_timer", arguments: tea };
    const often = { name: "often", every: 60, tool: "set_timer", arguments: tea };
    const { next_at } = await site.call("schedule_job", cron);
    await site.call("schedule_job", often);
    await site.call("set_timer", { timer_name: "seen", seconds: 3_600 });
    const page = await site.visitor.open("/jobs");
    const schedules = page.getByRole("region", { name: "Schedules" });
    const nightly = schedules.getByRole("listitem").filter({ hasText: "schedule_nightly" });
    await nightly.locator(`time[datetime="${next_at}"]`).waitFor();
    const subscribers = page.getByRole("region", { name: "Who is notified of your jobs" });
    await subscribers.getByText("A client that listens").waitFor();
    await subscribers.getByText("job.ended · kinds timer").waitFor();
    expect(await inaccessible(page)).toEqual([]);
    if (process.env.PICTURES)
      await page.screenshot({ path: `${process.env.PICTURES}/subscribers.png`, fullPage: true });
    page.on("dialog", (dialog) => dialog.accept());
    await nightly.getByRole("button", { name: "End schedule_nightly" }).click();
    await nightly.waitFor({ state: "detached" });
    await schedules.getByText("schedule_often").waitFor();
    expect(await site.call("probe_status", { job_names: ["schedule_nightly"] })).toMatchObject({
      statuses: [{ status: "cancelled" }],
    });
    await site.call("cancel_job", { job_names: ["schedule_often"] });
    const [timer, schedule] = await Promise.all([
      site.visitor.open(jobPath("timer_seen")),
      site.visitor.open(jobPath("schedule_often")),
    ]);
    await timer.getByRole("region", { name: "Who is notified of it" }).getByText("A client that listens").waitFor();
    await waitForState(schedule, "cancelled");
    expect(await schedule.getByText("A client that listens").count()).toBe(0);
    await Promise.all([page, timer, schedule].map((each) => each.close()));
  });

  test("no request goes to another origin, the policy is in force, and no page can be framed", async () => {
    const page = await site.visitor.open("/");
    await page.locator("#tools").waitFor();
    const ran = await page.evaluate(`
      const script = document.createElement("script");
      script.textContent = "window.ran = true";
      document.body.append(script);
      const frame = document.createElement("iframe");
      frame.src = "/jobs";
      document.body.append(frame);
      "ran" in window`);
    expect(ran).toBe(false);
    await until(
      "the policy to refuse both",
      () => site.visitor.complaints.filter((complaint) => /Content Security Policy/.test(complaint)).length >= 2,
    );
    expect(foreignRequests(site)).toEqual([]);
    // This test has provoked the complaints about the policy; there are no others.
    expect(site.visitor.complaints.filter((complaint) => !/Content Security Policy/.test(complaint))).toEqual([]);
    await page.close();
  });
});
