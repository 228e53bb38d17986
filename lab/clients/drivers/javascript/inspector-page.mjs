/** The Inspector's page in a browser: the form of a tool, and arguments as JSON for the other steps. */
import { spawn } from "node:child_process";
import chromium from "@sparticuz/chromium";
import { chromium as browsers } from "playwright-core";
import { drive, RUN, step, token, url } from "./steps.mjs";

const PATIENCE = 60_000;
const port = 20_000 + (Number.parseInt(RUN, 36) % 20_000);
const auth = token ? ["--header", `Authorization: Bearer ${token}`] : [];
const args = ["node_modules/.bin/mcp-inspector", "--web", "--transport", "http", "--server-url", url, ...auth];
const env = { ...process.env, CLIENT_PORT: `${port}`, MCP_SANDBOX_PORT: `${port + 1}`, MCP_AUTO_OPEN_ENABLED: "false" };
const inspector = spawn("node", args, { env, stdio: ["ignore", "pipe", "inherit"] });
const address = await new Promise((resolve) => {
  let said = "";
  inspector.stdout.on("data", (chunk) => {
    said += chunk;
    const [found] = /http:\/\/[^\s]*API_TOKEN=\w+/.exec(said) ?? [];
    if (found) resolve(found);
  });
});
const browser = await browsers.launch({
  executablePath: await chromium.executablePath(),
  args: chromium.args.filter((arg) => !/single-process|no-zygote|disable-web-security|site-per-process/.test(arg)),
});
const page = await browser.newPage({ viewport: { width: 1_600, height: 2_000 } });
page.setDefaultTimeout(PATIENCE);
await page.goto(address);
// The visible switches cover their inputs, which cannot be clicked.
const flip = (at) =>
  page
    .locator("input[role=switch]")
    .nth(at)
    .evaluate((input) => input.click());
await page.getByText("Disconnected").waitFor();
await flip(0);
await page.getByText("Connected", { exact: true }).waitFor();
await page.getByText("Tools", { exact: true }).first().click();

async function choose(name) {
  const closing = page.getByRole("button", { name: "Close results" });
  if (await closing.isVisible()) await closing.click();
  await page.getByText(name, { exact: true }).first().click();
  await page.getByRole("button", { name: "Execute Tool" }).waitFor();
}

async function type(area, text) {
  await area.focus();
  await page.keyboard.press("Control+A");
  await page.keyboard.insertText(text);
}

/** Calls the tool with the arguments in its form; returns the shown result. */
async function execute() {
  await page.getByRole("button", { name: "Execute Tool" }).click();
  await page.getByText("Results", { exact: true }).waitFor();
  return page.evaluate(() => {
    const heading = [...document.querySelectorAll("*")].find(
      (one) => one.childElementCount === 0 && one.textContent === "Results",
    );
    const panel = heading.closest(".mantine-Card-root, .mantine-Paper-root") ?? heading.parentElement.parentElement;
    // The editor renders only visible rows, so its value is read instead.
    const editor = panel.querySelector(".ace_editor");
    return editor?.env?.editor?.getValue() ?? panel.textContent;
  });
}

await drive({
  list: () => page.locator("button *:not(:has(*))").allTextContents(),
  async call(name, args) {
    await choose(name);
    const json = page.getByLabel(/^Arguments JSON/);
    if (!(await json.isVisible())) await flip(1);
    await type(json, JSON.stringify(args));
    return { content: [{ type: "text", text: await execute() }] };
  },
});
await step("form", async () => {
  await choose("set_timer");
  if (await page.getByLabel(/^Arguments JSON/).isVisible()) await flip(1);
  await page.getByRole("textbox", { name: "timer_name" }).first().fill(`form${RUN}`);
  await type(page.getByLabel(/^seconds, /), "3600");
  const shown = await execute();
  return JSON.parse(shown).job_name === `timer_form${RUN}` || shown;
});
await browser.close();
inspector.kill();
process.exit(0);
