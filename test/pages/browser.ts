/** A browser for tests: Chromium from npm, an installed Chrome where that does not run, or none. */
import axe from "axe-core";
import type { Browser, BrowserContext, BrowserContextOptions, Frame, Page } from "playwright-core";

/** How long what a test waits for may take, in milliseconds: it only ends what hangs. */
export const PATIENCE = 60_000;

/** Run in a page before its own scripts: a browser that draws nothing. */
export const NO_CANVAS = "HTMLCanvasElement.prototype.getContext = () => null";

/** Starts a browser; undefined, said plainly, where there is none. */
export async function startBrowser(): Promise<Browser | undefined> {
  const { chromium } = await import("playwright-core");
  const problems: unknown[] = [];
  for (const options of [bundled, installed]) {
    try {
      return await chromium.launch(await options());
    } catch (error) {
      problems.push(error instanceof Error ? error.message.split("\n")[0] : error);
    }
  }
  console.warn(`No browser runs here: the tests in one DID NOT RUN.\n${problems.join("\n")}`);
  return undefined;
}

async function bundled() {
  const { default: chromium } = await import("@sparticuz/chromium");
  // Some of its arguments are for where there is room for one process only.
  const args = chromium.args.filter(
    (arg) => !/single-process|no-zygote|disable-web-security|site-per-process/.test(arg),
  );
  return { executablePath: await chromium.executablePath(), args };
}

const installed = async () => ({ channel: "chrome" });

/** A person at the pages of a server: a context of its own, which notes what the browser asks for and complains of. */
export interface Visitor extends AsyncDisposable {
  readonly context: BrowserContext;
  /** The addresses of all requests so far. */
  readonly requests: readonly string[];
  /** What scripts and the browser complained of. */
  readonly complaints: readonly string[];
  open(path: string): Promise<Page>;
}

export async function visit(browser: Browser, origin: string, options: BrowserContextOptions = {}): Promise<Visitor> {
  const context = await browser.newContext({ locale: "en-GB", timezoneId: "Europe/Berlin", ...options });
  context.setDefaultTimeout(PATIENCE);
  const requests: string[] = [];
  const complaints: string[] = [];
  context.on("request", (request) => requests.push(request.url()));
  context.on("weberror", (error) => complaints.push(String(error.error())));
  context.on("console", (message) => {
    if (message.type() === "error" && !/Failed to load resource/.test(message.text())) complaints.push(message.text());
  });
  return {
    context,
    requests,
    complaints,
    async open(path) {
      const page = await context.newPage();
      await page.goto(origin + path);
      return page;
    },
    [Symbol.asyncDispose]: () => context.close(),
  };
}

/** What an automatic check of accessibility finds wrong with a page as it is now. */
export async function inaccessible(page: Page | Frame): Promise<string[]> {
  // Evaluated from outside, which the page's policy allows: it adds no script to the page.
  await page.evaluate(axe.source);
  const { violations }: axe.AxeResults = await page.evaluate("axe.run()");
  return violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(" ")}`);
}
