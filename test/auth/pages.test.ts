/** Pages of a deployment whose callers sign in: a job is visible only to its caller, and to visitors with a link to it. */
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Seal } from "../../functions/auth/seal.ts";
import { startBrowser, visit } from "../pages/browser.ts";
import { rpcHeaders, rpcMessage } from "../support/rpc.ts";
import { type Stack, startStack } from "../support/stack.ts";
import { bearer, bearerBindings, callerAt, type TestCaller } from "./support.ts";

const TOKENS = {
  ada: "static-token-of-ada",
  bob: "static-token-of-bob",
  eve: "e".repeat(6_000),
  fay: "f".repeat(2_800),
};
const PUBLIC_URL = "https://tools.example";
const VIEW_KEY = "v".repeat(32);

let stack: Stack;
let ada: TestCaller;
let bob: TestCaller;
beforeAll(async () => {
  stack = await startStack({ bindings: { ...bearerBindings(TOKENS), PUBLIC_URL, VIEW_KEY } });
  ada = callerAt(stack.url, TOKENS.ada);
  bob = callerAt(stack.url, TOKENS.bob);
});
afterAll(() => stack?.[Symbol.asyncDispose]());

/** The header that a browser adds to a request from a page of this server. */
const OWN = { "sec-fetch-site": "same-origin" };

const get = (path: string, headers: Record<string, string> = {}) =>
  fetch(stack.origin + path, { headers, redirect: "manual" });
const look = (name: string, headers: Record<string, string> = {}, link = "") =>
  get(`${link ? `/pages/link/${link}` : "/pages/job"}?${new URLSearchParams({ name })}`, headers);
const cookieOf = (response: Response) => response.headers.get("set-cookie")?.split(";")[0] ?? "";

/** Starts a timer of a caller, and returns the path of its link. */
async function timerOf(caller: TestCaller, timer_name: string): Promise<string> {
  const { view_url } = await caller.call("set_timer", { timer_name, seconds: 3_600 });
  const { origin, pathname } = new URL(view_url);
  expect(origin).toBe(PUBLIC_URL);
  return pathname;
}

async function follow(path: string) {
  const response = await get(path);
  const location = new URL(response.headers.get("location") ?? "", PUBLIC_URL);
  return { response, location, cookie: cookieOf(response), link: location.searchParams.get("link") ?? "" };
}

async function signIn(token: string): Promise<string> {
  const response = await fetch(`${stack.origin}/pages/session`, {
    method: "POST",
    headers: { ...bearer(token), ...OWN },
  });
  expect(response.status).toBe(204);
  expect(response.headers.get("set-cookie")).toMatch(/; HttpOnly; SameSite=Strict/);
  return cookieOf(response);
}

/** Calls a tool as a page does. */
async function callFrom(headers: Record<string, string>, name: string, args: object) {
  const params = { name, arguments: args };
  return fetch(stack.url, {
    method: "POST",
    headers: { ...rpcHeaders("tools/call", params), ...headers },
    body: JSON.stringify(rpcMessage("tools/call", params, {})),
  });
}

test("views of a link have their own limit, and do not count as their owner's requests", async () => {
  await using limited = await startStack({
    bindings: { ...bearerBindings(TOKENS), PUBLIC_URL, VIEW_KEY, RATE_LIMIT: "30" },
    workers: 0,
    resonate: stack.resonate,
  });
  const owner = callerAt(limited.url, TOKENS.ada);
  const { view_url } = await owner.call("set_timer", { timer_name: "viewed", seconds: 3_600 });
  const sealed = await fetch(limited.origin + new URL(view_url).pathname, { redirect: "manual" });
  const link = new URL(sealed.headers.get("location") ?? "", limited.origin).searchParams.get("link");
  const views: number[] = [];
  for (let n = 0; n < 10; n++) {
    const headers = { cookie: cookieOf(sealed), ...OWN };
    views.push((await fetch(`${limited.origin}/pages/link/${link}?name=timer_viewed`, { headers })).status);
  }
  expect([views[0], views.at(-1)]).toEqual([200, 429]);
  expect((await owner.call("probe_status", { job_names: ["timer_viewed"] })).statuses[0].status).toBe("running");
});

describe("a link", () => {
  test("is exchanged for a cookie that shows the job and cannot change it", async () => {
    const { response, location, cookie, link } = await follow(await timerOf(ada, "linked"));
    expect(response.status).toBe(303);
    expect(location.pathname).toBe("/jobs/timer_linked");
    expect(Object.fromEntries(response.headers)).toMatchObject({
      "cache-control": "no-store",
      "referrer-policy": "no-referrer",
    });
    const shown = await look("timer_linked", { cookie, ...OWN }, link);
    expect(shown.headers.get("cache-control")).toBe("no-store");
    const job = await shown.json();
    expect(job).toMatchObject({ job_name: "timer_linked", status: "running", may_write: false });
    expect(job.task).toBeUndefined();
    const refused = await callFrom({ cookie, ...OWN }, "cancel_job", { job_names: ["timer_linked"] });
    expect(refused.status).toBe(401);
    // A link does not show who is notified of the job.
    expect((await get("/pages/subscribers?job=timer_linked", { cookie, ...OWN })).status).toBe(401);
    expect(Object.keys(job)).not.toContain("subscriptions");
  });

  test("comes with a task as well: in its status message for people, in its _meta for programs", async () => {
    const task = await ada.tasks.call("timer", { timer_name: "of a task", seconds: 3_600 });
    expect(task).toMatchObject({ resultType: "task", status: "working" });
    const [doing, page, ...more] = task.statusMessage.split("\n");
    expect([doing, page, more]).toEqual([
      expect.stringMatching(/^timer_of a task: running, due at /),
      `Its page: ${task._meta.view_url}`,
      [],
    ]);
    const { origin, pathname } = new URL(task._meta.view_url);
    expect(origin).toBe(PUBLIC_URL);
    const { cookie, link } = await follow(pathname);
    const shown = await look("timer_of a task", { cookie, ...OWN }, link);
    expect(await shown.json()).toMatchObject({ job_name: "timer_of a task", may_write: false });
  });

  test("shows no other job of its caller or of another caller", async () => {
    const { cookie, link } = await follow(await timerOf(ada, "only this"));
    await timerOf(ada, "not this");
    await timerOf(bob, "nor that");
    for (const name of ["timer_not this", "timer_nor that", "timer_only this~2", "timer_only%20this"]) {
      expect([name, (await look(name, { cookie, ...OWN }, link)).status]).toEqual([name, 401]);
    }
    expect((await look("timer_only this", OWN, link)).status).toBe(401);
  });

  test("works only from a page of this server", async () => {
    const { cookie, link } = await follow(await timerOf(ada, "ours"));
    for (const site of ["cross-site", "same-site", "none"]) {
      expect((await look("timer_ours", { cookie, "sec-fetch-site": site }, link)).status).toBe(401);
    }
    expect((await look("timer_ours", { cookie }, link)).status).toBe(401);
  });

  test("that is forged is not found", async () => {
    for (const path of ["/view/x", "/view/AAAA", `/view/${"A".repeat(200)}`, "/view/%00"]) {
      const response = await get(path);
      expect([path, response.status, response.headers.get("set-cookie")]).toEqual([path, 404, null]);
    }
  });

  test("shows its owner's job even to a caller who has a job of the same name", async () => {
    const path = await timerOf(ada, "tea");
    await bob.call("set_timer", { timer_name: "tea", seconds: 60 });
    const { cookie, link } = await follow(path);
    const both = { cookie: `${cookie}; ${await signIn(TOKENS.bob)}`, ...OWN };
    const [linked, own] = await Promise.all(
      [look("timer_tea", both, link), look("timer_tea", both)].map(async (r) => (await r).json()),
    );
    expect(linked).toMatchObject({ may_write: false });
    expect(own).toMatchObject({ may_write: true });
    expect(linked.args.fires_at).not.toBe(own.args.fires_at);
  });
});

describe("a session", () => {
  test("shows only its caller's jobs", async () => {
    await timerOf(ada, "of ada");
    await timerOf(bob, "of bob");
    const cookie = await signIn(TOKENS.ada);
    expect((await look("timer_of ada", { cookie, ...OWN })).status).toBe(200);
    expect((await look("timer_of bob", { cookie, ...OWN })).status).toBe(404);
    const listed = await (await callFrom({ cookie, ...OWN }, "list_jobs", { limit: 100 })).json();
    const names = listed.result.structuredContent.jobs.map(({ job_name }: { job_name: string }) => job_name);
    expect(names).toContain("timer_of ada");
    expect(names).not.toContain("timer_of bob");
  });

  test("is ignored in requests from another site's page or from no page", async () => {
    await timerOf(ada, "safe");
    const cookie = await signIn(TOKENS.ada);
    for (const headers of [{ "sec-fetch-site": "cross-site" }, { "sec-fetch-site": "same-site" }, {}]) {
      const sent = { cookie, ...headers } as Record<string, string>;
      expect((await callFrom(sent, "cancel_job", { job_names: ["timer_safe"] })).status).toBe(401);
      expect((await look("timer_safe", sent)).status).toBe(401);
    }
    const abroad = await callFrom({ cookie, ...OWN, origin: "https://evil.example" }, "cancel_job", {
      job_names: ["timer_safe"],
    });
    expect(abroad.status).toBe(403);
    expect(await ada.call("get_timer_status", { timer_name: "safe" })).toMatchObject({ status: "running" });
  });

  test("begins only with a valid token, from a page of this server", async () => {
    const begin = (headers: Record<string, string>) =>
      fetch(`${stack.origin}/pages/session`, { method: "POST", headers });
    expect((await begin({ ...bearer("no-such-token"), ...OWN })).status).toBe(401);
    expect((await begin(OWN)).status).toBe(401);
    expect((await begin(bearer(TOKENS.ada))).status).toBe(403);
    expect((await begin({ ...bearer(TOKENS.ada), "sec-fetch-site": "cross-site" })).status).toBe(403);
  });

  test("does not begin with a token whose cookie browsers would drop, and the refusal says why", async () => {
    expect((await signIn(TOKENS.fay)).length).toBeLessThan(4_096);
    const headers = { ...bearer(TOKENS.eve), ...OWN };
    const refused = await fetch(`${stack.origin}/pages/session`, { method: "POST", headers });
    expect([refused.status, refused.headers.get("set-cookie")]).toEqual([413, null]);
    expect(await refused.json()).toEqual({
      error:
        "The access token is too long for a browser's session (6000 characters): " +
        "have the authorization server put fewer claims into it.",
    });
  });

  test("that is forged is refused", async () => {
    for (const value of ["", "x", TOKENS.ada, "A".repeat(80)]) {
      const headers = { cookie: `session=${value}`, ...OWN };
      expect((await callFrom(headers, "list_jobs", {})).status).toBe(401);
    }
  });

  test("of another deployment, and a link, are refused", async () => {
    const sealed = async (key: string, purpose: string) => {
      const value = await new Seal(key).close(purpose, TOKENS.ada, Date.now() + 60_000);
      return (await callFrom({ cookie: `session=${value}`, ...OWN }, "list_jobs", {})).status;
    };
    expect(await sealed(VIEW_KEY, "session")).toBe(200);
    expect(await sealed("w".repeat(32), "session")).toBe(401);
    expect(await sealed(VIEW_KEY, "link")).toBe(401);
  });
});

const browser: Browser | undefined = await startBrowser();
afterAll(() => browser?.close());

test.runIf(browser)("in a browser: two visitors with one link, signing in, the list, a form, signing out", async () => {
  const path = await timerOf(ada, "in a browser");
  for (const token of [undefined, TOKENS.bob]) {
    await using visitor = await visit(browser as Browser, stack.origin);
    if (token !== undefined) {
      const signing = await visitor.open("/jobs");
      await signing.getByLabel("Token").fill(token);
      await signing.getByRole("button", { name: "Sign in" }).click();
      await signing.getByRole("searchbox").waitFor();
    }
    const page = await visitor.open(path);
    await page.locator(".facts .chip", { hasText: "running" }).waitFor();
    expect(page.url()).toContain("/jobs/timer_in%20a%20browser?link=");
    expect(await page.getByRole("button", { name: "Cancel" }).count()).toBe(0);
  }
  // A visitor with only a link sees the job change, too, without a stream.
  const other = await timerOf(ada, "followed by its link");
  await using guest = await visit(browser as Browser, stack.origin);
  const linked = await guest.open(other);
  await linked.locator(".facts .chip", { hasText: "running" }).waitFor();
  await ada.call("cancel_job", { job_names: ["timer_followed by its link"] });
  await linked.locator(".facts .chip", { hasText: "cancelled" }).waitFor();

  await using visitor = await visit(browser as Browser, stack.origin);
  const page = await visitor.open("/jobs");
  await page.getByLabel("Token").fill("no-such-token");
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("alert").waitFor();
  await page.getByLabel("Token").fill(TOKENS.eve);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("alert").filter({ hasText: "too long for a browser's session" }).waitFor();
  await page.getByLabel("Token").fill(TOKENS.ada);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("link", { name: "timer_in a browser" }).click();
  page.on("dialog", (dialog) => dialog.accept());
  await page.getByRole("button", { name: "Cancel" }).click();
  await page.locator(".facts .chip", { hasText: "cancelled" }).waitFor();
  // A tool's form on the front page starts a job of the caller who is signed in.
  await page.goto(stack.origin);
  await page.locator("summary code", { hasText: /^set_timer$/ }).click();
  const form = page.locator("details[open] form");
  await form.getByLabel("timer name").fill("by its form");
  await form.getByLabel("seconds").fill("3600");
  await form.getByRole("button", { name: "Start" }).click();
  await page.locator(".facts .chip", { hasText: "running" }).waitFor();
  expect((await ada.call("probe_status", { job_names: ["timer_by its form"] })).statuses[0].status).toBe("running");
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByRole("heading", { name: "Connect" }).waitFor();
  await page.goto(`${stack.origin}/jobs`);
  await page.getByLabel("Token").waitFor();
});
