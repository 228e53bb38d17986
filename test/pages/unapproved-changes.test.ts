/** Unapproved changes of a wrapped server's tools are shown to users on their own machine, and to no unknown visitor. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { type EdgeProcess, startEdge } from "../../cli/launcher/local-edge.ts";
import { bearerBindings } from "../auth/support.ts";
import { startBrowser, visit } from "./browser.ts";

const LINE = "+ <b>leak</b> is new";
const browser = await startBrowser();

let edge: EdgeProcess;
beforeAll(async () => {
  const bindings = { AUTH_MODE: "none", RESONATE_URL: "http://127.0.0.1:9", OPERATE: "local" };
  const others = [
    { ...bindings, ...bearerBindings({ ada: "static-token-of-ada" }) },
    { ...bindings, OPERATE: "" },
  ];
  edge = await startEdge({ port: 0, entry: "test/wrap/list/unapproved-edge.ts", bindings, otherIsolates: others });
});
afterAll(async () => {
  await browser?.close();
  await edge?.[Symbol.asyncDispose]();
});

test("the front page of a local stack shows them as text", async () => {
  const { unapproved } = await (await fetch(`${edge.url}/pages/about`)).json();
  expect(unapproved).toEqual([{ server: "acme", lines: [LINE] }]);
  if (!browser) return;
  await using visitor = await visit(browser, edge.url);
  const page = await visitor.open("/");
  await page.getByRole("region", { name: "Held back of acme" }).getByText(LINE, { exact: true }).waitFor();
  // The page shows the server's descriptions of its tools as text, never as elements.
  for (const name of ["read", "odd", "flat"]) await page.locator("summary", { hasText: name }).first().click();
  expect(await page.locator(".injected, leak").count()).toBe(0);
  await page.locator("details.tool", { hasText: "flat" }).getByRole("button", { name: "Start" }).waitFor();
  // A parameter may have any name.
  expect(await page.getByLabel("constructor").inputValue()).toBe("");
});

test.each([
  ["whose callers have tokens", 0],
  ["that does not run locally", 1],
])("a deployment %s does not show them to unknown visitors", async (_what, i) => {
  const text = await (await fetch(`${edge.otherUrls[i]}/pages/about`)).text();
  expect(text).toContain('"name":"held"');
  expect(text).not.toContain("leak");
});
