/** The files of a job on its page and in its card, in a real browser. */
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { crc32, deflateSync } from "node:zlib";
import type { Browser, FrameLocator, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { until } from "../../testing/stack/program.ts";
import { inaccessible, startBrowser, TEST_TIMEOUT_MS, visit } from "../pages/browser.ts";
import { rpc } from "../support/rpc.ts";
import { type Stack, startStack } from "../support/stack.ts";
import type { Host } from "./host.ts";
import { type HostPage, serveHost } from "./page.ts";

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });

const browser: Browser | undefined = await startBrowser();
const PUBLIC_URL = "https://jobs.example";
const { PICTURES } = process.env;

/** A black PNG file, 320 by 80 pixels. */
function picture(): Buffer {
  const number = (value: number) => Buffer.from(value.toString(16).padStart(8, "0"), "hex");
  const chunk = (kind: string, data: Buffer) => {
    const body = Buffer.concat([Buffer.from(kind), data]);
    return Buffer.concat([number(data.length), body, number(crc32(body))]);
  };
  return Buffer.concat([
    Buffer.from("\x89PNG\r\n\x1a\n", "latin1"),
    chunk("IHDR", Buffer.concat([number(320), number(80), Buffer.from([8, 0, 0, 0, 0])])), // a byte of gray for each pixel
    chunk("IDAT", deflateSync(Buffer.alloc(80 * (1 + 320)))), // before each row the number of its filter
    chunk("IEND", Buffer.alloc(0)),
  ]);
}

/** A WAV file with a second of silence. */
function silence(): Buffer {
  const header = Buffer.alloc(44);
  header.write("RIFF\0\0\0\0WAVEfmt ", "latin1");
  header.writeUInt32LE(8_036, 4);
  for (const [value, at] of [
    [16, 16],
    [8_000, 24],
    [8_000, 28],
    [8_000, 40],
  ] as const)
    header.writeUInt32LE(value, at);
  for (const [value, at] of [
    [1, 20],
    [1, 22],
    [1, 32],
    [8, 34],
  ] as const)
    header.writeUInt16LE(value, at);
  header.write("data", 36);
  return Buffer.concat([header, Buffer.alloc(8_000, 128)]);
}

const DAYS = Array.from({ length: 500 }, (_, n) => new Date(Date.UTC(2025, 0, 1 + n)).toISOString().slice(0, 10));
const VISITS = `day,visits,shop\r\n${DAYS.map((day, n) => `${day},${n % 7},"North, ""old"""`).join("\r\n")}\r\n`;
const FILES = {
  "visits.csv": VISITS,
  "shops.csv": "shop,visits\nNorth,5\nSouth,6\n",
  "total.json": '{"visits": {"total": 42}}',
  // Files of Windows programs begin with a byte order mark.
  "marked.csv": "\ufeffshop,visits\nWest,7\nEast,8",
  "marked.json": '\ufeff{"visits": {"marked": 43}}',
  "plan.yaml": "steps: 3",
  "latin-1.csv": `data:,${Buffer.from("shop,visits\nCaf\u00e9,9\n", "latin1").toString("base64")}`,
  "page.html": "<script>window.broken = 1</script><h1>Not a heading</h1>",
  "export.zip": "data:,UEsFBgAAAAAAAAAAAAAAAAAAAAAAAA==",
};

describe.runIf(browser)("the files of a job", () => {
  let folder: string;
  let stack: Stack;
  let host: HostPage;
  const args = { name: "shown", texts: Object.values(FILES), names: Object.keys(FILES) };
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "files-"));
    host = await serveHost();
    args.names.push("picture.png", "silence.wav");
    args.texts.push(...[picture(), silence()].map((bytes) => `data:,${bytes.toString("base64")}`));
    const programs = { edge: "test/files/fixture/files-edge.ts", worker: "test/files/fixture/files-worker.ts" };
    const shown = { VIEW_KEY: "v".repeat(32), PUBLIC_URL, CORS_ORIGINS: host.origin };
    const bindings = { FILES_URL: folder, ALLOWED_HOSTS: "127.0.0.1,localhost,jobs.example", ...shown };
    stack = await startStack({ programs, env: { FILES_URL: folder }, bindings });
    await rpc(stack.url, "tools/call", { name: "make_many", arguments: args }, { capabilities: {} });
  });
  afterAll(async () => {
    await browser?.close();
    await stack?.[Symbol.asyncDispose]();
    await host?.[Symbol.asyncDispose]();
    await rm(folder, { recursive: true, force: true });
  });

  /** Expects the picture, the sound, tables, a chart, text and JSON. */
  async function expectShown(at: Page | FrameLocator): Promise<void> {
    const loaded = (selector: string, property: string) =>
      until(`${property} of ${selector}`, () =>
        at.locator(selector).evaluate((element, key) => (element as unknown as Record<string, number>)[key], property),
      );
    expect(await loaded("img[alt='picture.png']", "naturalWidth")).toBe(320);
    expect(await loaded("audio[aria-label='silence.wav']", "duration")).toBe(1);
    await at.getByRole("img", { name: /^Chart of 2025-01-01 to 2026-05-15\. visits from 0 to 6/ }).waitFor();
    const file = (name: string) => at.locator("figure.file", { hasText: name });
    await file("visits.csv").getByText("As a table").click();
    await file("visits.csv").getByRole("row", { name: '2025-01-02 1 North, "old"' }).waitFor();
    await file("visits.csv").getByText("100 more lines are in the file.").waitFor();
    await file("shops.csv").getByRole("row", { name: "South 6" }).waitFor();
    await file("total.json").locator(".tree", { hasText: "total" }).first().waitFor();
    await file("marked.csv").getByRole("row", { name: "East 8" }).waitFor();
    await file("marked.csv").getByRole("columnheader", { name: "shop", exact: true }).waitFor();
    await file("marked.json").locator(".tree", { hasText: "marked" }).first().waitFor();
    await file("plan.yaml").locator("pre", { hasText: "steps: 3" }).waitFor();
    await file("latin-1.csv").getByRole("row", { name: "Caf\ufffd 9" }).waitFor();
    expect(await at.getByText("Only the beginning is shown").count()).toBe(0);
    await file("page.html").locator("pre", { hasText: "<h1>Not a heading</h1>" }).waitFor();
    expect(await at.getByRole("heading", { name: "Not a heading" }).count()).toBe(0);
  }

  test("are shown on its page and can be downloaded there", async () => {
    await using visitor = await visit(browser as Browser, stack.origin);
    // A type may have any name.
    await visitor.context.route(/pages\/job\?/, async (route) => {
      const response = await route.fetch();
      await route.fulfill({
        response,
        body: (await response.text()).replaceAll("application/yaml", "text/constructor"),
      });
    });
    const page = await visitor.open("/jobs/make_many_shown");
    await expectShown(page);
    const [download] = await Promise.all([
      page.waitForEvent("download"),
      page.getByRole("link", { name: "export.zip" }).click(),
    ]);
    expect(download.suggestedFilename()).toBe("export.zip");
    expect((await readFile(await download.path())).subarray(0, 2).toString()).toBe("PK");
    if (PICTURES) await page.screenshot({ path: `${PICTURES}/files.png`, fullPage: true });
    expect(await inaccessible(page)).toEqual([]);
    expect(visitor.complaints).toEqual([]);
  });

  test("are shown in its card, with an address for each", async () => {
    const page = await (browser as Browser).newPage({ viewport: { width: 640, height: 700 } });
    page.setDefaultTimeout(TEST_TIMEOUT_MS);
    await page.goto(host.origin);
    await page.waitForFunction("window.host");
    await page.evaluate((given) => (window as unknown as { host: Host }).host.open(given), {
      url: stack.url,
      tool: "make_many",
      args,
    });
    const card = page.frameLocator("iframe");
    await expectShown(card);
    await card.getByRole("button", { name: "Download export.zip" }).waitFor();
    if (PICTURES) await page.screenshot({ path: `${PICTURES}/files-card.png`, fullPage: true });
    const call = { name: "job_card", arguments: { job_name: "make_many_shown" } };
    const { result } = await rpc(stack.url, "tools/call", call, { capabilities: {} });
    const { url } = result.structuredContent.job_files.find(({ name }: { name: string }) => name === "visits.csv");
    expect(await (await fetch(url.replace(PUBLIC_URL, stack.origin))).text()).toBe(VISITS);
    await page.close();
  });
});
