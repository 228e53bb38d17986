/** The page of a job in a real browser: live, with its questions, actions and timeline. */
import { readFile } from "node:fs/promises";
import { execa } from "execa";
import type { Browser, BrowserContext, Request } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { until } from "../../testing/stack/program.ts";
import { SEATTLE } from "../support/months.ts";
import { NO_CANVAS, startBrowser, TEST_TIMEOUT_MS } from "./browser.ts";
import { foreignRequests, jobPath, type Site, startSite, waitForState } from "./site.ts";

const browser: Browser | undefined = await startBrowser();

const JULY = { ...SEATTLE, year: 2014, month: 7 };

describe.runIf(browser)("the page of a job", () => {
  let site: Site;
  beforeAll(async () => {
    site = await startSite(browser as Browser);
  });
  afterAll(() => site?.[Symbol.asyncDispose]());

  test("a job that an MCP client starts can be watched until its chart appears, without a reload", async () => {
    const [worker] = site.stack.workers;
    await worker?.kill();
    const { job_name } = await site.call("start_gathering", JULY);
    const page = await site.visitor.open(jobPath(job_name));
    await waitForState(page, "running");
    let loads = 0;
    page.on("load", () => loads++);
    await worker?.start();
    await waitForState(page, "complete");
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
    await until(
      "the dark page's colors",
      async () => String(await marks()).includes("rgb(255, 148, 87)"),
      TEST_TIMEOUT_MS,
    );
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

  test("a question is answered on the page, and the job continues", async () => {
    await site.begin("multi_input", { name: "on the page" });
    const page = await site.visitor.open(jobPath("multi_input_on the page"));
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
    await waitForState(page, "complete");
    await page.locator("#result ~ .tree", { hasText: "Ada" }).waitFor();
    await page.close();
  });

  test("a job is cancelled on its page, and started again", async () => {
    await site.call("set_timer", { timer_name: "to stop", seconds: 3_600 });
    const page = await site.visitor.open(jobPath("timer_to stop"));
    await page
      .getByRole("region", { name: "Time left" })
      .getByText(/^\d+ min( \d+ s)?$/)
      .waitFor();
    page.on("dialog", (dialog) => dialog.accept());
    await page.getByRole("button", { name: "Cancel" }).click();
    await waitForState(page, "cancelled");
    await page.getByRole("button", { name: "Start again" }).click();
    await page.getByLabel("seconds").fill("7200");
    await page.getByRole("button", { name: "Start", exact: true }).click();
    await page.waitForURL(`**${jobPath("timer_to stop~2")}`);
    await waitForState(page, "running");
    await page.close();
  });

  test("a job that is started again with other arguments leads to the page of the job that begins", async () => {
    await site.call("set_timer", { timer_name: "first name", seconds: 3_600 });
    await site.call("cancel_job", { job_names: ["timer_first name"] });
    const page = await site.visitor.open(jobPath("timer_first name"));
    await page.getByRole("button", { name: "Start again" }).click();
    await page.getByLabel("timer name").fill("second name");
    await page.getByLabel("seconds").fill("3600");
    await page.getByRole("button", { name: "Start", exact: true }).click();
    await page.waitForURL(`**${jobPath("timer_second name")}`);
    await waitForState(page, "running");
    await page.close();
  });

  test("a job with lists and a choice is started again with the same ones", async () => {
    await site.call("set_timer", { timer_name: "listed", seconds: 3_600 });
    await site.call("cancel_job", { job_names: ["timer_listed"] });
    await using own = await site.visit();
    const list = (items: object) => ({ type: "array", items });
    const lists = {
      words: list({ type: "string" }),
      none: list({ type: "string" }),
      days: list({ enum: ["mo", "tu"] }),
      size: { type: "integer", enum: [1, 2] },
    };
    const values = { words: ["a", "b"], days: ["tu"], size: 2 };
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
      await route.fulfill({ response, json: { ...job, args: { ...job.args, ...values } } });
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
    await site.call("set_timer", { timer_name: "nested", seconds: 3_600 });
    await using own = await site.visit();
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
    await site.begin("open_question", { name: "tidied" });
    const page = await site.visitor.open(jobPath("open_question_tidied"));
    await page.getByText("Which colour?").first().waitFor();
    await site.call("cancel_job", { job_names: ["open_question_tidied"] });
    await waitForState(page, "cancelled");
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
    const { jobs } = await site.call("list_jobs", {});
    expect(jobs).toContainEqual(expect.objectContaining({ job_name: "open_question_tidied", cleanup: "done" }));
    await page.close();
  });

  test("a job that resumes an earlier one says so", async () => {
    await site.begin("failing_job", {});
    const first = await site.visitor.open(jobPath("failing_job_once"));
    await waitForState(first, "failed");
    const env = { ...site.stack.resonate.env, RESONATE_NAMESPACE: site.stack.namespace };
    await execa(process.execPath, ["cli/main.ts", "retry", "failing_job_once"], { env });
    const page = await site.visitor.open(jobPath("failing_job_once~2"));
    await page.getByText("It continued from failing_job_once").waitFor();
    await first.close();
    await page.close();
  });

  test("a chart that cannot be drawn is replaced by its table", async () => {
    const { job_name } = await site.call("start_gathering", JULY);
    await site.call("await_result", { job_names: [job_name] });
    await using own = await site.visit();
    await own.context.addInitScript(NO_CANVAS);
    const page = await own.open(jobPath(job_name));
    await page.getByText("This browser cannot draw the chart").waitFor();
    await page.getByRole("row", { name: /^2014-07-23/ }).waitFor();
    expect(await page.locator(".chart").count()).toBe(0);
    expect(own.complaints).toEqual([]);
  });

  test("the page shows a lost connection, and changes in the meantime once the connection is back", async () => {
    await site.call("set_timer", { timer_name: "offline", seconds: 3_600 });
    const page = await site.visitor.open(jobPath("timer_offline"));
    await waitForState(page, "running");
    await site.stack.edge.kill();
    await page.getByText("Connection lost").waitFor();
    await site.stack.edge.start();
    await site.call("cancel_job", { job_names: ["timer_offline"] });
    await waitForState(page, "cancelled");
    await page.getByText("Connection lost").waitFor({ state: "detached" });
    await page.close();
  });

  test("a caller's text in arguments, questions and results is shown as text", async () => {
    const filename = "<b id=injected>x</b><script>document.title='1'</script>";
    await site.begin("confirm_delete", { filename });
    const page = await site.visitor.open(jobPath(`confirm_delete_${filename}`));
    await page.getByRole("heading", { name: `Delete ${filename}?` }).waitFor();
    await page.getByText("Decline").click();
    await waitForState(page, "complete");
    await page.getByText(`kept ${filename}`).waitFor();
    expect(await page.locator("#injected").count()).toBe(0);
    await page.close();
  });

  test("the page says that an answer was refused, and accepts it again", async () => {
    await site.begin("confirm_delete", { filename: "refused" });
    const page = await site.visitor.open(jobPath("confirm_delete_refused"));
    await page.route(site.stack.url, (route) =>
      route.request().headers()["mcp-method"] === "tasks/update"
        ? route.fulfill({ status: 403, json: { error: "refused", error_description: "Not now." } })
        : route.continue(),
    );
    const refused = page.getByRole("alert").filter({ hasText: "Not now." });
    await page.getByText("Decline").click();
    await refused.waitFor();
    await page.unroute(site.stack.url);
    await page.getByText("Decline").click();
    await page.getByText("kept refused").waitFor();
    expect(await refused.count()).toBe(0);
    await page.close();
  });

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

  test("ten tabs share one stream, and all are updated", async () => {
    const names = Array.from({ length: 10 }, (_, i) => `tab ${i}`);
    await Promise.all(names.map((timer_name) => site.call("set_timer", { timer_name, seconds: 3_600 })));
    await using own = await site.visit();
    const open = streamsOf(own.context);
    const pages = await Promise.all(names.map((name) => own.open(jobPath(`timer_${name}`))));
    await Promise.all(pages.map((page) => waitForState(page, "running")));
    // A stream is replaced by another one when a tab follows a further job.
    await until("one stream", () => open.size === 1, TEST_TIMEOUT_MS);
    await site.call("cancel_job", { job_names: names.map((name) => `timer_${name}`) });
    await Promise.all(pages.map((page) => waitForState(page, "cancelled")));
  });

  test("a hidden tab has no stream, and is updated when it is visible again", async () => {
    await site.call("set_timer", { timer_name: "hidden", seconds: 3_600 });
    await using own = await site.visit();
    const open = streamsOf(own.context);
    const page = await own.open(jobPath("timer_hidden"));
    await until("a stream", () => open.size === 1, TEST_TIMEOUT_MS);
    const turn = (state: string) =>
      page.evaluate(`Object.defineProperty(document, "visibilityState", { value: "${state}", configurable: true });
        document.dispatchEvent(new Event("visibilitychange"))`);
    await turn("hidden");
    await until("no stream", () => open.size === 0, TEST_TIMEOUT_MS);
    await site.call("cancel_job", { job_names: ["timer_hidden"] });
    await turn("visible");
    await waitForState(page, "cancelled");
  });

  test("on request, the browser notifies a visitor of a job's end", async () => {
    await site.call("set_timer", { timer_name: "told", seconds: 3_600 });
    await using own = await site.visit();
    await own.context.addInitScript(`window.notifications = [];
      window.Notification = class {
        static permission = "default";
        static requestPermission = async () => (this.permission = "granted");
        constructor(title, { body } = {}) {
          if (Notification.permission === "granted") window.notifications.push([title, body]);
        }
      };`);
    const page = await own.open(jobPath("timer_told"));
    await page.getByLabel("Notify me when it is done").check();
    await site.call("cancel_job", { job_names: ["timer_told"] });
    await waitForState(page, "cancelled");
    const notifications = await until("the notification", async () => {
      const all = await page.evaluate("window.notifications");
      return Array.isArray(all) && all.length > 0 ? all : undefined;
    });
    expect(notifications).toEqual([["timer_told", "The job is cancelled."]]);

    // Chrome on Android has the class, and lets no page create one.
    await site.call("set_timer", { timer_name: "untold", seconds: 3_600 });
    const userAgent = "Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 Chrome/140.0.0.0 Mobile Safari/537.36";
    for (const permission of ["default", "granted"]) {
      await using phone = await site.visit({ userAgent });
      await phone.context.addInitScript(`window.Notification = class {
          static permission = "${permission}";
          constructor() { throw new TypeError("Illegal constructor"); }
        };`);
      const otherPage = await phone.open(jobPath("timer_untold"));
      await otherPage.getByRole("button", { name: /Cancel/ }).waitFor();
      expect(await otherPage.getByLabel("Notify me when it is done").count()).toBe(0);
    }
  });

  test("no request goes to another origin, and the browser has no complaints", () => {
    expect(foreignRequests(site)).toEqual([]);
    expect(site.visitor.complaints).toEqual([]);
  });
});
