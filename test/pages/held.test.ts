/** Held-back changes of a wrapped server's tools are shown to users on their own machine, and to no unknown visitor. */
import { expect, test } from "vitest";
import { bearerBindings } from "../auth/support.ts";
import { startStack } from "../support/stack.ts";
import { startBrowser, visit } from "./browser.ts";

const programs = { edge: "test/wrap/list/held-edge.ts", worker: "worker/main.ts" };
const LINE = "+ <b>leak</b> is new";
const browser = await startBrowser();

test("the front page of a local stack shows them as text", async () => {
  await using stack = await startStack({ workers: 0, programs, bindings: { OPERATE: "local" } });
  const { held } = await (await fetch(`${stack.origin}/pages/about`)).json();
  expect(held).toEqual([{ server: "acme", lines: [LINE] }]);
  if (!browser) return;
  await using visitor = await visit(browser, stack.origin);
  const page = await visitor.open("/");
  await page.getByRole("region", { name: "Held back of acme" }).getByText(LINE, { exact: true }).waitFor();
  // The page shows the server's descriptions of its tools as text, never as elements.
  for (const name of ["read", "odd", "flat"]) await page.locator("summary", { hasText: name }).first().click();
  expect(await page.locator(".injected, leak").count()).toBe(0);
  await page.locator("details.tool", { hasText: "flat" }).getByRole("button", { name: "Start" }).waitFor();
});

test.each([
  ["whose callers have tokens", { ...bearerBindings({ ada: "token-of-ada" }), OPERATE: "local" }],
  ["that does not run locally", {}],
])("a deployment %s does not show them to unknown visitors", async (_what, bindings) => {
  await using stack = await startStack({ workers: 0, programs, bindings });
  const text = await (await fetch(`${stack.origin}/pages/about`)).text();
  expect(text).toContain('"name":"held"');
  expect(text).not.toContain("leak");
});
