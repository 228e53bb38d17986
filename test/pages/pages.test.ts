/** The pages in a real browser, on the whole product with the conformance suite's jobs, some of which ask questions. */
import { readFile } from "node:fs/promises";
import { execa } from "execa";
import type { Browser, BrowserContext, Page, Request } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { childOf } from "../../core/resonate/codec.ts";
import { journalEntryId } from "../../core/resonate/ids.ts";
import { until } from "../../testing/simulation/program.ts";
import { SEATTLE } from "../support/months.ts";
import { rpc } from "../support/rpc.ts";
import type { Stack } from "../support/stack.ts";
import { startTaskStack } from "../tasks/support.ts";
import { inaccessible, NO_CANVAS, PATIENCE, poll, startBrowser, type Visitor, visit } from "./browser.ts";

const browser: Browser | undefined = await startBrowser();

const JULY = { ...SEATTLE, year: 2014, month: 7 };

describe.runIf(browser)("in a browser", () => {
  let stack: Stack;
  let visitor: Visitor;
  beforeAll(async () => {
    stack = await startTaskStack();
    visitor = await visit(browser as Browser, stack.origin);
  });
  afterAll(async () => {
    await visitor?.[Symbol.asyncDispose]();
    await browser?.close();
    await stack?.[Symbol.asyncDispose]();
  });

  /** Calls a tool as an MCP client that knows nothing of the page. */
  const call = async (name: string, args: object) => {
    const { result } = await rpc(stack.url, "tools/call", { name, arguments: args }, { capabilities: {} });
    return result.structuredContent;
  };
  /** Starts a job as a task, and does not wait for it. */
  const begin = async (name: string, args: object) => {
    const { result } = await rpc(stack.url, "tools/call", { name, arguments: args });
    return result;
  };
  /** The streams that the pages of a context have open, as they change. */
  const streamsOf = (context: BrowserContext) => {
    const open = new Set<Request>();
    context.on("request", (request) => {
      if (request.headers()["mcp-method"] === "subscriptions/listen") open.add(request);
    });
    context.on("requestfailed", (request) => open.delete(request));
    context.on("requestfinished", (request) => open.delete(request));
    return open;
  };
  const jobPath = (name: string) => `/jobs/${encodeURIComponent(name)}`;
  const status = (page: Page, words: string) => page.locator(".facts .chip", { hasText: words }).waitFor();

  test("a job that an MCP client starts can be watched until its chart appears, without a reload", async () => {
    const [worker] = stack.workers;
    await worker?.kill();
    const { job_name } = await call("start_gathering", JULY);
    const page = await visitor.open(jobPath(job_name));
    await status(page, "running");
    let loads = 0;
    page.on("load", () => loads++);
    await worker?.start();
    await status(page, "complete");
    const chart = page.getByRole("img", {
      name: /^Chart of 2014-07-01 to 2014-07-31\. Temperature, highest from 18.9 to 34.4 °C/,
    });
    await chart.waitFor();
    const marks = () =>
      page.evaluate(
        '[...document.querySelectorAll(".u-marker")].map((one) => getComputedStyle(one).borderColor).join()',
      );
    expect(await marks()).toContain("rgb(209, 80, 11)");
    await page.emulateMedia({ colorScheme: "dark" });
    await until("the dark page's colors", async () => String(await marks()).includes("rgb(255, 148, 87)"), PATIENCE);
    await page.getByText("As a table").click();
    expect(await page.getByRole("row", { name: /^2014-07-23/ }).textContent()).toMatch(/19\.3/);
    await page.locator(".timeline", { hasText: "request done" }).waitFor();
    expect(loads).toBe(0);
    const [csv] = await Promise.all([page.waitForEvent("download"), page.getByText("Download CSV").click()]);
    expect(csv.suggestedFilename()).toBe(`${job_name}.csv`);
    const [json] = await Promise.all([page.waitForEvent("download"), page.getByText("Download JSON").click()]);
    const { daily } = JSON.parse(await readFile(await json.path(), "utf8"));
    expect(daily.time).toHaveLength(31);
    await page.close();
  });

  test("a question is answered on the page, and the job goes on", async () => {
    await begin("multi_input", { name: "on the page" });
    const page = await visitor.open(jobPath("multi_input_on the page"));
    await page.getByRole("textbox", { name: "name" }).fill("Ada");
    await page
      .locator("section.question", { hasText: "What is your name?" })
      .getByText("Answer", { exact: true })
      .click();
    // The job has a partial result before its end.
    const partial = page.getByRole("region", { name: "A partial result" });
    await partial.getByText("Ada").waitFor();
    if (process.env.PICTURES) await page.screenshot({ path: `${process.env.PICTURES}/partial.png`, fullPage: true });
    await page.getByLabel("confirm").check();
    await page.locator("section.question", { hasText: "Are you sure?" }).getByText("Answer", { exact: true }).click();
    await status(page, "complete");
    await page.locator("#result ~ .tree", { hasText: "Ada" }).waitFor();
    await page.close();
  });

  test("a job is cancelled on its page, and started again", async () => {
    await call("set_timer", { timer_name: "to stop", seconds: 3_600 });
    const page = await visitor.open(jobPath("timer_to stop"));
    await page
      .getByRole("region", { name: "Time left" })
      .getByText(/^\d+ min( \d+ s)?$/)
      .waitFor();
    page.on("dialog", (dialog) => dialog.accept());
    await page.getByRole("button", { name: "Cancel" }).click();
    await status(page, "cancelled");
    await page.getByRole("button", { name: "Start again" }).click();
    await page.getByLabel("seconds").fill("7200");
    await page.getByRole("button", { name: "Start", exact: true }).click();
    await page.waitForURL(`**${jobPath("timer_to stop~2")}`);
    await status(page, "running");
    await page.close();
  });

  test("a job that is started again with other arguments leads to the page of the job that begins", async () => {
    await call("set_timer", { timer_name: "first name", seconds: 3_600 });
    await call("cancel_job", { job_names: ["timer_first name"] });
    const page = await visitor.open(jobPath("timer_first name"));
    await page.getByRole("button", { name: "Start again" }).click();
    await page.getByLabel("timer name").fill("second name");
    await page.getByLabel("seconds").fill("3600");
    await page.getByRole("button", { name: "Start", exact: true }).click();
    await page.waitForURL(`**${jobPath("timer_second name")}`);
    await status(page, "running");
    await page.close();
  });

  test("a job with lists and a choice is started again with the same ones", async () => {
    await call("set_timer", { timer_name: "listed", seconds: 3_600 });
    await call("cancel_job", { job_names: ["timer_listed"] });
    await using own = await visit(browser as Browser, stack.origin);
    const list = (items: object) => ({ type: "array", items });
    const lists = {
      words: list({ type: "string" }),
      none: list({ type: "string" }),
      days: list({ enum: ["mo", "tu"] }),
      size: { type: "integer", enum: [1, 2] },
    };
    const given = { words: ["a", "b"], days: ["tu"], size: 2 };
    await own.context.route(/pages\/about/, async (route) => {
      const response = await route.fetch();
      const about = await response.json();
      for (const { name, inputSchema } of about.tools) {
        if (name === "set_timer" || name === "timer") Object.assign(inputSchema.properties, lists);
      }
      await route.fulfill({ response, json: about });
    });
    await own.context.route(/pages\/job\?/, async (route) => {
      const response = await route.fetch();
      const job = await response.json();
      await route.fulfill({ response, json: { ...job, args: { ...job.args, ...given } } });
    });
    const page = await own.open(jobPath("timer_listed"));
    await page.getByRole("button", { name: "Start again" }).click();
    await page.getByLabel("seconds").fill("7200");
    const [request] = await Promise.all([
      page.waitForRequest((each) => each.headers()["mcp-method"] === "tools/call"),
      page.getByRole("button", { name: "Start", exact: true }).click(),
    ]);
    const { words, none, days, size } = request.postDataJSON().params.arguments;
    expect([words, none, days, size]).toEqual(['["a","b"]', undefined, ["tu"], 2]);
  });

  test("a countdown may go to a moment within another argument", async () => {
    await call("set_timer", { timer_name: "nested", seconds: 3_600 });
    await using own = await visit(browser as Browser, stack.origin);
    await own.context.route(/pages\/job\?/, async (route) => {
      const response = await route.fetch();
      const job = await response.json();
      const view = { as: "countdown", until: "tea.at" };
      await route.fulfill({ response, json: { ...job, args: { tea: { at: job.args.fires_at } }, view } });
    });
    const page = await own.open(jobPath("timer_nested"));
    const left = page.getByRole("region", { name: "Time left" });
    await left.getByText(/^\d+ min( \d+ s)?$/).waitFor();
  });

  test("the page shows the clean-up of a cancelled job step by step, and the list shows its outcome", async () => {
    await begin("open_question", { name: "tidied" });
    const page = await visitor.open(jobPath("open_question_tidied"));
    await page.getByText("Which colour?").first().waitFor();
    await call("cancel_job", { job_names: ["open_question_tidied"] });
    await status(page, "cancelled");
    await page.getByText("Its clean-up is done.").waitFor();
    const timeline = page.locator(".timeline li");
    await timeline.filter({ hasText: "tidy up done" }).waitFor();
    const shown = (await timeline.allTextContents()).map((line) => line.replace(/^.*?(?=Cancelled|tidy)/, ""));
    expect(shown.slice(-3)).toEqual([
      "Cancelled: what follows is its clean-up",
      expect.stringMatching(/^tidy up: attempt 1 failed, not yet/),
      "tidy up done",
    ]);
    expect(await page.getByText("Connection lost").count()).toBe(0);
    const { jobs } = await call("list_jobs", {});
    expect(jobs).toContainEqual(expect.objectContaining({ job_name: "open_question_tidied", cleanup: "done" }));
    await page.close();
  });

  test("a job that resumes an earlier one says so", async () => {
    await begin("failing_job", {});
    const first = await visitor.open(jobPath("failing_job_once"));
    await status(first, "failed");
    const env = { ...stack.resonate.env, RESONATE_NAMESPACE: stack.namespace };
    await execa(process.execPath, ["cli/main.ts", "retry", "failing_job_once"], { env });
    const page = await visitor.open(jobPath("failing_job_once~2"));
    await page.getByText("It went on from failing_job_once").waitFor();
    await first.close();
    await page.close();
  });

  test("a chart that cannot be drawn is replaced by its table", async () => {
    const { job_name } = await call("start_gathering", JULY);
    await call("await_result", { job_names: [job_name] });
    await using own = await visit(browser as Browser, stack.origin);
    await own.context.addInitScript(NO_CANVAS);
    const page = await own.open(jobPath(job_name));
    await page.getByText("This browser cannot draw the chart").waitFor();
    await page.getByRole("row", { name: /^2014-07-23/ }).waitFor();
    expect(await page.locator(".chart").count()).toBe(0);
    expect(own.complaints).toEqual([]);
  });

  test("the page shows a lost connection, and changes in the meantime once the connection is back", async () => {
    await call("set_timer", { timer_name: "offline", seconds: 3_600 });
    const page = await visitor.open(jobPath("timer_offline"));
    await status(page, "running");
    await stack.edge.kill();
    await page.getByText("Connection lost").waitFor();
    await stack.edge.start();
    await call("cancel_job", { job_names: ["timer_offline"] });
    await status(page, "cancelled");
    await page.getByText("Connection lost").waitFor({ state: "detached" });
    await page.close();
  });

  test("the list shows new jobs, finds jobs by name, and links to them", async () => {
    const page = await visitor.open("/jobs");
    await call("set_timer", { timer_name: "in the list", seconds: 3_600 });
    await page.getByRole("link", { name: "timer_in the list" }).waitFor();
    await page.getByLabel("Search").fill("no such job");
    await page.getByText("None of the jobs").waitFor();
    await page.getByLabel("Search").fill("the list");
    await page.getByRole("link", { name: "timer_in the list" }).click();
    await status(page, "running");
    await page.close();
  });

  /** Lets a visitor's pages of lists have three jobs, and counts the requests for them. `refuses` may answer them itself. */
  const listsOfThree = async (own: Visitor, refuses = () => 0) => {
    const asked: (string | undefined)[] = [];
    await own.context.route(`${stack.origin}/mcp`, async (route) => {
      const message = route.request().postDataJSON();
      if (message.params.name !== "list_jobs") return route.continue();
      message.params.arguments.limit = 3;
      asked.push(message.params.arguments.cursor);
      const status = refuses();
      if (status > 0) return route.fulfill({ status, json: { error: "refused", error_description: "Not now." } });
      return route.continue({ postData: JSON.stringify(message) });
    });
    return asked;
  };

  test("the list reads older jobs when asked, and then goes on reading the newest", async () => {
    const names = Array.from({ length: 12 }, (_, n) => `paged ${n}`);
    for (const timer_name of names) await call("set_timer", { timer_name, seconds: 3_600 });
    await using own = await visit(browser as Browser, stack.origin);
    const asked = await listsOfThree(own);
    const page = await own.open("/jobs");
    const rows = page.locator("table.jobs tbody tr");
    for (const count of [3, 6, 9]) {
      await until(`${count} jobs`, async () => (await rows.count()) === count, PATIENCE);
      await page.getByRole("button", { name: "Read older jobs" }).click();
    }
    await until("12 jobs", async () => (await rows.count()) === 12, PATIENCE);
    asked.length = 0;
    await call("set_timer", { timer_name: "newest", seconds: 3_600 });
    await page.getByRole("link", { name: "timer_newest" }).waitFor();
    await page.waitForTimeout(12_000);
    expect(asked.length).toBeLessThanOrEqual(5);
    const listed = (await rows.locator("a").allTextContents()).map((name) => name.replace(/^timer_/, ""));
    expect(listed).toEqual(["newest", ...names.toReversed()]);
  });

  test("the list keeps its jobs and its search while too many requests are refused", async () => {
    for (const timer_name of ["kept", "hidden by the search"]) await call("set_timer", { timer_name, seconds: 3_600 });
    await using own = await visit(browser as Browser, stack.origin);
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
    const { job_name } = await call("set_timer", { timer_name, seconds: 3_600 });
    const page = await visitor.open("/jobs");
    await page.getByRole("link", { name: job_name, exact: true }).click();
    await status(page, "running");
    expect(await page.getByRole("heading", { level: 1 }).textContent()).toContain(job_name);
    expect(await page.title()).toBe(`running: ${job_name}`);
    expect(await page.locator("main img, main script").count()).toBe(0);
    await page.close();
  });

  test("a caller's text in arguments, questions and results is shown as text", async () => {
    const filename = "<b id=injected>x</b><script>document.title='1'</script>";
    await begin("confirm_delete", { filename });
    const page = await visitor.open(jobPath(`confirm_delete_${filename}`));
    await page.getByRole("heading", { name: `Delete ${filename}?` }).waitFor();
    await page.getByText("Decline").click();
    await status(page, "complete");
    await page.getByText(`kept ${filename}`).waitFor();
    expect(await page.locator("#injected").count()).toBe(0);
    await page.close();
  });

  test("the page says that an answer was refused, and takes it again", async () => {
    await begin("confirm_delete", { filename: "refused" });
    const page = await visitor.open(jobPath("confirm_delete_refused"));
    await page.route(stack.url, (route) =>
      route.request().headers()["mcp-method"] === "tasks/update"
        ? route.fulfill({ status: 403, json: { error: "refused", error_description: "Not now." } })
        : route.continue(),
    );
    const refused = page.getByRole("alert").filter({ hasText: "Not now." });
    await page.getByText("Decline").click();
    await refused.waitFor();
    await page.unroute(stack.url);
    await page.getByText("Decline").click();
    await page.getByText("kept refused").waitFor();
    expect(await refused.count()).toBe(0);
    await page.close();
  });

  test("ten tabs share one stream, and all are updated", async () => {
    const names = Array.from({ length: 10 }, (_, i) => `tab ${i}`);
    await Promise.all(names.map((timer_name) => call("set_timer", { timer_name, seconds: 3_600 })));
    await using own = await visit(browser as Browser, stack.origin);
    const open = streamsOf(own.context);
    const pages = await Promise.all(names.map((name) => own.open(jobPath(`timer_${name}`))));
    await Promise.all(pages.map((page) => status(page, "running")));
    // A stream is replaced by another one when a tab follows a further job.
    await until("one stream", () => open.size === 1, PATIENCE);
    await call("cancel_job", { job_names: names.map((name) => `timer_${name}`) });
    await Promise.all(pages.map((page) => status(page, "cancelled")));
  });

  test("a hidden tab has no stream, and is updated when it is visible again", async () => {
    await call("set_timer", { timer_name: "hidden", seconds: 3_600 });
    await using own = await visit(browser as Browser, stack.origin);
    const open = streamsOf(own.context);
    const page = await own.open(jobPath("timer_hidden"));
    await until("a stream", () => open.size === 1, PATIENCE);
    const turn = (state: string) =>
      page.evaluate(`Object.defineProperty(document, "visibilityState", { value: "${state}", configurable: true });
        document.dispatchEvent(new Event("visibilitychange"))`);
    await turn("hidden");
    await until("no stream", () => open.size === 0, PATIENCE);
    await call("cancel_job", { job_names: ["timer_hidden"] });
    await turn("visible");
    await status(page, "cancelled");
  });

  test("on request, the browser notifies a visitor of a job's end", async () => {
    await call("set_timer", { timer_name: "told", seconds: 3_600 });
    await using own = await visit(browser as Browser, stack.origin);
    await own.context.addInitScript(`window.told = [];
      window.Notification = class {
        static permission = "default";
        static requestPermission = async () => (this.permission = "granted");
        constructor(title, { body } = {}) {
          if (Notification.permission === "granted") window.told.push([title, body]);
        }
      };`);
    const page = await own.open(jobPath("timer_told"));
    await page.getByLabel("Tell me when it is done").check();
    await call("cancel_job", { job_names: ["timer_told"] });
    await status(page, "cancelled");
    const told = await until("the notification", async () => {
      const all = await page.evaluate("window.told");
      return Array.isArray(all) && all.length > 0 ? all : undefined;
    });
    expect(told).toEqual([["timer_told", "The job is cancelled."]]);

    // Chrome on Android has the class, and lets no page make one.
    await call("set_timer", { timer_name: "untold", seconds: 3_600 });
    const userAgent = "Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 Chrome/140.0.0.0 Mobile Safari/537.36";
    for (const permission of ["default", "granted"]) {
      await using phone = await visit(browser as Browser, stack.origin, { userAgent });
      await phone.context.addInitScript(`window.Notification = class {
          static permission = "${permission}";
          constructor() { throw new TypeError("Illegal constructor"); }
        };`);
      const untold = await phone.open(jobPath("timer_untold"));
      await untold.getByRole("button", { name: /Cancel/ }).waitFor();
      expect(await untold.getByLabel("Tell me when it is done").count()).toBe(0);
    }
  });

  test.each(["light", "dark"] as const)(
    "every page can be used with a screen reader and the keyboard, in %s",
    async (colorScheme) => {
      await begin("open_question", { name: "accessible" });
      const { job_name } = await call("start_gathering", JULY);
      await call("await_result", { job_names: [job_name] });
      await using own = await visit(browser as Browser, stack.origin, { colorScheme, reducedMotion: "reduce" });
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
    for (const timer_name of ["goes on", "has ended"]) await call("set_timer", { timer_name, seconds: 3_600 });
    await call("cancel_job", { job_names: ["timer_has ended"] });
    const { job_name } = await call("start_gathering", JULY);
    await call("await_result", { job_names: [job_name] });
    const page = await visitor.open("/jobs");
    const saved = page.waitForEvent("download");
    // A job that is removed between its listing and its reading is left out.
    await page.route(/pages\/job\?name=timer_has/, (route) => route.fulfill({ status: 404, json: { error: "None." } }));
    await page.getByRole("button", { name: "Download all" }).click();
    const jobs = JSON.parse(await readFile(await (await saved).path(), "utf8"));
    expect(jobs.map((each: { job_name: string }) => each.job_name)).not.toContain("timer_has ended");
    const month = jobs.find((each: { job_name: string }) => each.job_name === job_name);
    expect(month).toMatchObject({ status: "complete", args: JULY, result: { daily: { time: expect.any(Array) } } });
    expect(month.timeline.length).toBeGreaterThan(0);
    page.on("dialog", (dialog) => dialog.accept());
    await page.getByRole("button", { name: "Remove ended jobs" }).click();
    await page.getByText(/^\d+ jobs are removed\. \d+ are not yours alone, and stay\.$/).waitFor();
    await page.getByRole("link", { name: "timer_has ended" }).waitFor({ state: "detached" });
    for (const name of ["timer_goes on", job_name]) await page.getByRole("link", { name, exact: true }).waitFor();
    expect(await call("probe_status", { job_names: ["timer_has ended"] })).toMatchObject({
      statuses: [{ status: "not_found" }],
    });
    await page.close();
  });

  test("a timeline of many records is shown and downloaded whole, also past a sleep that has not ended", async () => {
    const { job_name } = await call("set_timer", { timer_name: "many records", seconds: 3_600 });
    const id = (n: number) => journalEntryId(`${stack.namespace}${job_name}`, n);
    const write = (n: number, entry: object, until: number) => {
      const { kind, data } = childOf(id(n), until, { param: entry, tags: { "resonate:timer": "true" } });
      return stack.resonate.call(kind, data);
    };
    const steps = Array.from({ length: 301 }, (_, i) => i + 1).filter((n) => n !== 2);
    await Promise.all(steps.map((n) => write(n, { kind: "step", op: `step ${n}` }, Date.now() - 1)));
    await write(2, { kind: "sleep", op: "nap" }, Date.now() + 3_600_000);
    const page = await visitor.open(jobPath(job_name));
    await page.getByRole("button", { name: "Show 289 more before these" }).click();
    const nap = page.locator(".timeline li", { hasText: "nap" });
    await nap.filter({ hasText: "sleeps until" }).waitFor();
    await stack.resonate.call("promise.settle", { id: id(2), state: "resolved", value: {} });
    await poll(page);
    await nap.filter({ hasText: "slept until" }).waitFor();
    await page.goto(`${stack.origin}/jobs`);
    const saved = page.waitForEvent("download");
    await page.getByRole("button", { name: "Download all" }).click();
    const jobs = JSON.parse(await readFile(await (await saved).path(), "utf8"));
    const { timeline } = jobs.find((each: { job_name: string }) => each.job_name === job_name);
    expect(timeline.map(({ n }: { n: number }) => n)).toEqual(Array.from({ length: 301 }, (_, i) => i + 1));
    await page.close();
  });

  test("a result that is stored in parts is downloaded whole, alone and with all jobs", async () => {
    const { job_name } = await call("start_gathering", JULY);
    await call("await_result", { job_names: [job_name] });
    await using own = await visit(browser as Browser, stack.origin);
    await own.context.route(/pages\/job\?/, async (route) => {
      const response = await route.fetch();
      const job = await response.json();
      const result = { "durable-mcp:parts": { id: "a", text: "{", characters: 1e6 } };
      await route.fulfill({ response, json: job.job_name === job_name ? { ...job, result } : job });
    });
    const saved = async (path: string, button: string) => {
      const page = await own.open(path);
      const [file] = await Promise.all([
        page.waitForEvent("download"),
        page.getByRole("button", { name: button }).click(),
      ]);
      return JSON.parse(await readFile(await file.path(), "utf8"));
    };
    const result = { daily: { time: expect.any(Array) } };
    expect(await saved(jobPath(job_name), "Download JSON")).toMatchObject(result);
    const all = await saved("/jobs", "Download all");
    expect(all.find((each: { job_name: string }) => each.job_name === job_name)).toMatchObject({ result });
    // A job that is removed while its parts are read is left out.
    await own.context.route("**/mcp", async (route) => {
      if (!route.request().postData()?.includes('"probe_status"')) return route.continue();
      await own.context.route(/pages\/job\?/, (gone) => gone.fulfill({ status: 404, json: { error: "None." } }));
      await route.fulfill({ json: { jsonrpc: "2.0", id: 1, result: { isError: true, content: [] } } });
    });
    const others = await saved("/jobs", "Download all");
    expect(others.map((each: { job_name: string }) => each.job_name)).not.toContain(job_name);
  });

  test("the list shows schedules and clients that listen, and ends a schedule", async () => {
    const listens = { name: "job.ended", cursor: null, arguments: { kinds: ["timer"] } };
    await rpc(stack.url, "events/poll", listens);
    const tea = JSON.stringify({ timer_name: "seen", seconds: 1 });
    const cron = { name: "nightly", cron: "0 3 * * *", tool: "set_timer", arguments: tea };
    const often = { name: "often", every: 60, tool: "set_timer", arguments: tea };
    const { next_at } = await call("schedule_job", cron);
    await call("schedule_job", often);
    await call("set_timer", { timer_name: "seen", seconds: 3_600 });
    const page = await visitor.open("/jobs");
    const schedules = page.getByRole("region", { name: "Schedules" });
    const nightly = schedules.getByRole("listitem").filter({ hasText: "schedule_nightly" });
    await nightly.locator(`time[datetime="${next_at}"]`).waitFor();
    const told = page.getByRole("region", { name: "Who is told of your jobs" });
    await told.getByText("A client that listens").waitFor();
    await told.getByText("job.ended · kinds timer").waitFor();
    expect(await inaccessible(page)).toEqual([]);
    if (process.env.PICTURES) await page.screenshot({ path: `${process.env.PICTURES}/told.png`, fullPage: true });
    page.on("dialog", (dialog) => dialog.accept());
    await nightly.getByRole("button", { name: "End schedule_nightly" }).click();
    await nightly.waitFor({ state: "detached" });
    await schedules.getByText("schedule_often").waitFor();
    expect(await call("probe_status", { job_names: ["schedule_nightly"] })).toMatchObject({
      statuses: [{ status: "cancelled" }],
    });
    await call("cancel_job", { job_names: ["schedule_often"] });
    const [timer, schedule] = await Promise.all([
      visitor.open(jobPath("timer_seen")),
      visitor.open(jobPath("schedule_often")),
    ]);
    await timer.getByRole("region", { name: "Who is told of it" }).getByText("A client that listens").waitFor();
    await status(schedule, "cancelled");
    expect(await schedule.getByText("A client that listens").count()).toBe(0);
    await Promise.all([page, timer, schedule].map((each) => each.close()));
  });

  test("no request goes to another origin, the policy is in force, and no page can be framed", async () => {
    const page = await visitor.open("/");
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
      () => visitor.complaints.filter((said) => /Content Security Policy/.test(said)).length >= 2,
    );
    const abroad = visitor.requests.filter((url) => !url.startsWith(stack.origin) && !/^(blob|data|about):/.test(url));
    expect(abroad).toEqual([]);
    // This test has provoked the complaints about the policy; there are no others.
    expect(visitor.complaints.filter((said) => !/Content Security Policy/.test(said))).toEqual([]);
    await page.close();
  });
});
