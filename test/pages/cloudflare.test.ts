/** The pages as Cloudflare serves them: as static assets, behind the Worker. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { createTestHarness } from "wrangler";

const vars = { RESONATE_URL: "http://127.0.0.1:9", LOG_LEVEL: "silent", AUTH_MODE: "none" };
const server = createTestHarness({ workers: [{ configPath: "./wrangler.toml", vars }] });
let origin: string;
beforeAll(async () => {
  ({ origin } = new URL((await server.listen()).url));
});
afterAll(() => server.close());

test.each([
  ["/", "text/html; charset=utf-8"],
  ["/jobs", "text/html; charset=utf-8"],
  ["/jobs/timer_a%2Fb", "text/html; charset=utf-8"],
  ["/assets/job.js", "text/javascript; charset=utf-8"],
  ["/assets/style.css", "text/css; charset=utf-8"],
  ["/favicon.ico", "image/svg+xml"],
])("%s is served under the pages' policy", async (path, type) => {
  const response = await fetch(origin + path);
  await response.body?.cancel();
  expect([response.status, response.headers.get("content-type")]).toEqual([200, type]);
  expect(response.headers.get("content-security-policy")).toMatch(/default-src 'none'.*frame-ancestors 'none'/);
});

test("a file that the browser has cached is not sent again", async () => {
  const first = await fetch(`${origin}/assets/job.js`);
  await first.body?.cancel();
  const headers = { "if-none-match": first.headers.get("etag") ?? "" };
  expect((await fetch(`${origin}/assets/job.js`, { headers })).status).toBe(304);
});

test.each(["/index.html", "/job.js", "/assets/none.js", "/assets/"])(
  "%s is not found, not even past the Worker",
  async (path) => {
    const response = await fetch(origin + path, { redirect: "manual" });
    expect([response.status, await response.json()]).toEqual([404, { error: expect.stringContaining("/mcp") }]);
  },
);
