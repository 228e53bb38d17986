/** A stack with the conformance suite's jobs, some of which ask questions, and a visitor of its pages. */
import type { Browser, BrowserContextOptions, Page } from "playwright-core";
import { rpc } from "../support/rpc.ts";
import type { Stack } from "../support/stack.ts";
import { startTaskStack } from "../tasks/support.ts";
import { type Visitor, visit } from "./browser.ts";

export interface Site extends AsyncDisposable {
  readonly stack: Stack;
  readonly visitor: Visitor;
  /** Another visitor, without the first one's data. */
  visit(options?: BrowserContextOptions): Promise<Visitor>;
  /** Calls a tool as an MCP client that knows nothing of the page. */
  call(name: string, args: object): Promise<ReturnType<typeof JSON.parse>>;
  /** Starts a job as a task, and does not wait for it. */
  begin(name: string, args: object): Promise<ReturnType<typeof JSON.parse>>;
}

export async function startSite(browser: Browser): Promise<Site> {
  const stack = await startTaskStack();
  const visitor = await visit(browser, stack.origin);
  return {
    stack,
    visitor,
    visit: (options) => visit(browser, stack.origin, options),
    async call(name, args) {
      const { result } = await rpc(stack.url, "tools/call", { name, arguments: args }, { capabilities: {} });
      return result.structuredContent;
    },
    async begin(name, args) {
      const { result } = await rpc(stack.url, "tools/call", { name, arguments: args });
      return result;
    },
    async [Symbol.asyncDispose]() {
      await visitor[Symbol.asyncDispose]();
      await browser.close();
      await stack[Symbol.asyncDispose]();
    },
  };
}

export const jobPath = (name: string): string => `/jobs/${encodeURIComponent(name)}`;

/** Waits until the page of a job shows a state. */
export const waitForState = (page: Page, words: string): Promise<void> =>
  page.locator(".facts .chip", { hasText: words }).waitFor();

/** The requests of a visitor's pages to other origins. */
export const foreignRequests = ({ stack, visitor }: Site): string[] =>
  visitor.requests.filter((url) => !url.startsWith(stack.origin) && !/^(blob|data|about):/.test(url));
