/** A browser for tests: Chromium from npm, or otherwise an installed Chrome, or none. */
import axe from "axe-core";
import type { Browser, BrowserContext, BrowserContextOptions, Frame, Page } from "playwright-core";

/** The longest wait of a test, in milliseconds. It only ends tests that hang. */
export const TEST_TIMEOUT_MS = 60_000;

/** Run in a page before its own scripts, makes the browser unable to draw on a canvas. */
export const NO_CANVAS = "HTMLCanvasElement.prototype.getContext = () => null";

/** Starts a browser. Warns and returns undefined if there is none. */
export async function startBrowser(): Promise<Browser | undefined> {
  const { chromium } = await import("playwright-core");
  const problems: unknown[] = [];
  for (const options of [bundledBrowser, installedBrowser]) {
    try {
      return await chromium.launch(await options());
    } catch (error) {
      problems.push(error instanceof Error ? error.message.split("\n")[0] : error);
    }
  }
  console.warn(`No browser runs here: the tests in one DID NOT RUN.\n${problems.join("\n")}`);
  return undefined;
}

async function bundledBrowser() {
  const { default: chromium } = await import("@sparticuz/chromium");
  // Some of its arguments are for environments that permit one process only.
  const args = chromium.args.filter(
    (arg) => !/single-process|no-zygote|disable-web-security|site-per-process/.test(arg),
  );
  return { executablePath: await chromium.executablePath(), args };
}

const installedBrowser = async () => ({ channel: "chrome" });

/** Has a page poll now, as one does that becomes visible. */
export const poll = (page: Page): Promise<unknown> =>
  page.evaluate('document.dispatchEvent(new Event("visibilitychange"))');

/** A visitor of a server's pages: a separate browser context that notes requests and complaints. */
export interface Visitor extends AsyncDisposable {
  readonly context: BrowserContext;
  /** The addresses of all requests so far. */
  readonly requests: readonly string[];
  /** The errors of scripts and of the browser. */
  readonly complaints: readonly string[];
  open(path: string): Promise<Page>;
}

export async function visit(browser: Browser, origin: string, options: BrowserContextOptions = {}): Promise<Visitor> {
  const context = await browser.newContext({ locale: "en-GB", timezoneId: "Europe/Berlin", ...options });
  context.setDefaultTimeout(TEST_TIMEOUT_MS);
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

/** The problems that an automatic check of accessibility finds in the current page. */
export async function inaccessible(page: Page | Frame): Promise<string[]> {
  // The script is evaluated from outside and adds no element to the page, which the page's policy permits.
  await page.evaluate(axe.source);
  const { violations }: axe.AxeResults = await page.evaluate("axe.run()");
  return violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(" ")}`);
}
