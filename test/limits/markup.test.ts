/** Text of callers and jobs is shown as text in pages and cards, even where it looks like HTML. */
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { type HostPage, serveHost } from "../cards/page.ts";
import { startBrowser, TEST_TIMEOUT_MS, visit } from "../pages/browser.ts";
import { rpc } from "../support/rpc.ts";
import { type Stack, startStack } from "../support/stack.ts";

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });

const browser: Browser | undefined = await startBrowser();

/** Texts that change the page's title or add elements if a page takes them for HTML or Markdown. */
const HTML = `<i class=injected>x</i><img class=injected src=x onerror="document.title='ran'"><script>document.title='ran'</script>`;
const MARKDOWN = "![x](https://evil.example/x.png) [click](javascript:document.title='ran') # Big";
/** An object that the pages' UI library would render as an element if it were passed where text belongs. */
const NODE = {
  tag: "b",
  type: "b",
  key: null,
  ref: null,
  props: { class: "injected", dangerouslySetInnerHTML: { __html: HTML } },
};

/** An object whose conversion to a string throws. */
const MUTE = { toString: 1, valueOf: 1 };

interface Said {
  name: string;
  step?: string;
  message?: string;
  question?: object;
  error?: string;
  result?: unknown;
}

const FORM = {
  type: "object",
  properties: { plain: { type: "string", title: HTML, description: MARKDOWN, default: HTML } },
};
const ODD_FORM = {
  type: "object",
  title: NODE,
  properties: {
    odd: { type: "string", title: NODE, description: NODE, default: NODE },
    choice: { type: "string", oneOf: [{ const: "a", title: NODE }, { const: NODE }, "no choice", null] },
    many: { type: "array", title: NODE, items: { anyOf: [{ const: "a", title: NODE }] } },
    sure: { type: "boolean", title: NODE, description: NODE },
    number: { type: "number", minimum: NODE, maximum: NODE },
    none: null,
    mute: { type: "string", default: MUTE, oneOf: [{ const: MUTE }], enum: [MUTE] },
    dumb: { type: "string", default: MUTE, enum: [MUTE] },
    list: { type: "string", enum: NODE, oneOf: NODE },
  },
  required: NODE,
};

/** Jobs, each with a text that a viewer must see unchanged. */
const SAID: [what: string, said: Said, shown: string][] = [
  ["a name", { name: `name ${HTML} ${MARKDOWN}`, result: 1 }, `say_name ${HTML}`],
  ["a result", { name: "result", result: { html: HTML, [HTML]: MARKDOWN } }, HTML],
  ["a result that looks like an element", { name: "node", result: { a: NODE, b: [NODE] } }, "dangerouslySetInnerHTML"],
  [
    "a result that looks like one of several parts",
    { name: "parts", result: { "durable-mcp:parts": { text: NODE, characters: NODE } } },
    "durable-mcp:parts",
  ],
  [
    "a result that looks like one of several parts with an odd length",
    { name: "length", result: { "durable-mcp:parts": { id: "x", text: "x", characters: NODE } } },
    "durable-mcp:parts",
  ],
  ["an error", { name: "error", error: `${HTML} ${MARKDOWN}` }, HTML],
  [
    "a step and its progress message",
    { name: "step", step: HTML, message: MARKDOWN, question: { message: "Go on?", requestedSchema: FORM } },
    MARKDOWN,
  ],
  [
    "a question",
    { name: "question", question: { message: `${HTML} ${MARKDOWN}`, requestedSchema: FORM } },
    `${HTML} ${MARKDOWN}`,
  ],
  ["a question's form", { name: "form", question: { message: "Go on?", requestedSchema: ODD_FORM } }, "Go on?"],
];

describe.runIf(browser)("in a browser,", () => {
  let stack: Stack;
  let host: HostPage;
  beforeAll(async () => {
    host = await serveHost();
    const programs = { edge: "test/limits/fixture/limits-edge.ts", worker: "test/limits/fixture/limits-worker.ts" };
    stack = await startStack({ programs, bindings: { CORS_ORIGINS: host.origin } });
  });
  afterAll(async () => {
    await browser?.close();
    await stack?.[Symbol.asyncDispose]();
    await host?.[Symbol.asyncDispose]();
  });

  const argumentsOf = ({ question, result, ...said }: Said) => ({
    ...said,
    ...(question && { question: JSON.stringify(question) }),
    ...(result !== undefined && { result: JSON.stringify(result) }),
  });

  /** Expects that no injected text became an element or a link of the page, and that no injected script ran. */
  async function isText(page: Page, frame: Pick<Page, "locator" | "evaluate">) {
    expect(await frame.locator(".injected").count()).toBe(0);
    expect(await page.title()).not.toBe("ran");
    expect(await frame.evaluate("document.title")).not.toBe("ran");
    expect(
      await frame.evaluate("[...document.links].filter(({ href }) => /^(javascript|https):/.test(href)).length"),
    ).toBe(0);
  }

  test.each(SAID)("%s is text on the job's page", async (_what, said, shown) => {
    const { result } = await rpc(stack.url, "tools/call", { name: "say", arguments: argumentsOf(said) });
    expect(result.resultType).toBe("task");
    await using visitor = await visit(browser as Browser, stack.origin);
    const page = await visitor.open(`/jobs/${encodeURIComponent(`say_${said.name}`)}`);
    await page.getByRole("heading", { level: 1, name: `say_${said.name}` }).waitFor();
    await page.locator("main").getByText(shown, { exact: false }).first().waitFor();
    await isText(page, page);
    expect(visitor.complaints).toEqual([]);
  });

  test.each(SAID)("%s is text in the card", async (_what, said, shown) => {
    const context = await (browser as Browser).newContext({ locale: "en-GB" });
    context.setDefaultTimeout(TEST_TIMEOUT_MS);
    const complaints: string[] = [];
    context.on("weberror", (error) => complaints.push(String(error.error())));
    const page = await context.newPage();
    await page.goto(host.origin);
    await page.waitForFunction("window.host");
    const opening = { url: stack.url, tool: "say", args: argumentsOf(said), as: "task" as const };
    await page.evaluate(`window.host.open(${JSON.stringify(opening)})`);
    const [, card] = page.frames();
    if (!card) throw new Error("there is no card");
    await card.getByText(shown, { exact: false }).first().waitFor();
    await isText(page, card);
    expect(await page.evaluate("window.host.called")).not.toContain("answer_for_user");
    expect(complaints).toEqual([]);
    await context.close();
  });
});
