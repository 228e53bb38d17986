/** The front page in a real browser: how to connect, and the state of the deployment's parts. */
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { until } from "../../testing/stack/program.ts";
import { rpc } from "../support/rpc.ts";
import { type Stack, startStack } from "../support/stack.ts";
import { poll, startBrowser, type Visitor, visit } from "./browser.ts";

// A Resonate server may repeat a dispatch only after half a minute.
vi.setConfig({ testTimeout: 300_000, hookTimeout: 120_000 });

const browser: Browser | undefined = await startBrowser();

let stack: Stack;
let visitor: Visitor;
beforeAll(async () => {
  if (!browser) return;
  stack = await startStack();
  visitor = await visit(browser, stack.origin);
});
afterAll(async () => {
  await visitor?.[Symbol.asyncDispose]();
  await browser?.close();
  await stack?.[Symbol.asyncDispose]();
});

test.runIf(browser)(
  "the front page shows the server's state and tools, and how to connect each client to it",
  async () => {
    const page = await visitor.open("/");
    await page.getByRole("listitem").filter({ hasText: "Edge: answers" }).waitFor();
    await page.getByRole("listitem").filter({ hasText: "Resonate server: ready" }).waitFor();
    const href = async (name: string) => (await page.getByRole("link", { name }).getAttribute("href")) ?? "";
    const cursor = new URL(await href("Add to Cursor")).searchParams.get("config") ?? "";
    expect(JSON.parse(atob(cursor))).toEqual({ url: stack.url });
    const code = (await href("Add to VS Code")).replace("vscode:mcp/install?", "");
    expect(JSON.parse(decodeURIComponent(code))).toMatchObject({ type: "http", url: stack.url });
    await page.getByText(`claude mcp add --transport http durable-mcp-edge ${stack.url}`, { exact: true }).waitFor();
    for (const host of ["Codex", "Goose"]) await page.getByText(host, { exact: true }).click();
    await page.getByText(`codex mcp add durable-mcp-edge --url ${stack.url}`, { exact: true }).waitFor();
    await page.getByText(`"uri": "${stack.url}"`).waitFor();
    await page.getByText("list_jobs", { exact: true }).click();
    await page.locator("details[open]", { hasText: "limit" }).waitFor();
    expect(await page.locator("link[rel=icon]").getAttribute("href")).toBe("/assets/icon.svg");
    await page.close();
  },
);

test.runIf(browser)("a page whose server does not answer at first is shown once it does", async () => {
  await using own = await visit(browser as Browser, stack.origin);
  await own.context.route(/pages\/about/, (route) => route.abort());
  const page = await own.open("/");
  await page.getByRole("link", { name: "…" }).waitFor();
  await own.context.unroute(/pages\/about/);
  await poll(page);
  await page.locator("#tools").waitFor();
});

test.runIf(browser)("a page that may not copy, as one over plain HTTP, has no buttons for it", async () => {
  await using own = await visit(browser as Browser, stack.origin);
  await own.context.addInitScript("delete Navigator.prototype.clipboard");
  const page = await own.open("/");
  await page.locator("#tools").waitFor();
  expect(await page.getByRole("button", { name: /^Copy/ }).count()).toBe(0);
});

test.runIf(browser)("a newcomer starts a job with a tool's form, and watches it live", async () => {
  const page = await visitor.open("/");
  for (const [tool, name] of [
    ["set_timer", "by its start"],
    ["timer", "as a task"],
  ] as const) {
    await page.goto(stack.origin);
    await page.locator("summary code", { hasText: new RegExp(`^${tool}$`) }).click();
    const form = page.locator("details[open] form");
    await form.getByLabel("timer name").fill(name);
    await form.getByLabel("seconds").fill("3600");
    await form.getByRole("button", { name: "Start" }).click();
    await page.waitForURL(`**/jobs/${encodeURIComponent(`timer_${name}`)}`);
    await page.getByText("running").first().waitFor();
  }
  await page.close();
});

test.runIf(browser)("the front page and a job's page say that no worker takes it, until one does", async () => {
  const [worker] = stack.workers;
  await worker?.kill();
  const timer = { name: "set_timer", arguments: { timer_name: "not taken", seconds: 3_600 } };
  await rpc(stack.url, "tools/call", timer, { capabilities: {} });
  const [front, own] = await Promise.all([visitor.open("/"), visitor.open("/jobs/timer_not%20taken")]);
  const workers = front.getByRole("listitem").filter({ hasText: "Workers" });
  const waitForText = (hasText: string | RegExp) =>
    until(`workers: ${hasText}`, async () => {
      await poll(front);
      return (await workers.filter({ hasText }).count()) > 0;
    });
  await waitForText(/jobs are waiting: no worker takes them · timer_not taken for \d/);
  await own.getByText("Waits for a worker").waitFor();
  await worker?.start();
  await waitForText("no job of yours waits for one");
  await own.getByText("Waits for a worker").waitFor({ state: "detached" });
  await Promise.all([front.close(), own.close()]);
});
