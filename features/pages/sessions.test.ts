import { describe, expect, test, vi } from "vitest";
import { type Caller, callerOf } from "../../core/author/caller.ts";
import { Seal } from "../../functions/auth/seal.ts";
import { readConfig } from "../../functions/config.ts";
import { follow, linked, session } from "./cookies.ts";
import { Pages } from "./sessions.ts";

const ada = await callerOf("ada", "ada");
const BEARER = { AUTH_MODE: "bearer", BEARER_TOKENS: JSON.stringify([{ name: "ada", sha256: "0".repeat(64) }]) };
const HOSTED = {
  ...BEARER,
  RESONATE_URL: "http://127.0.0.1:9",
  PUBLIC_URL: "https://tools.example",
  VIEW_KEY: "k".repeat(32),
  ASSETS: {},
};

const pages = (env: object = {}) => {
  const identity = { info: { name: "test", title: "Test", version: "1" }, instructions: "", description: "Tests." };
  return new Pages(readConfig({ ...HOSTED, ...env }), { tools: [], identity, handles: undefined });
};
const admitted = async () => undefined;
const refusing = (caller: Caller) => async (key: string) => (key === caller.key ? "is blocked" : undefined);
const sealedIn = (url = "") => new URL(url).pathname.slice("/view/".length);

describe("a link to a job", () => {
  test("is at the configured host, and leads to the job's page", async () => {
    const url = await pages().urlOf("timer_a/b", ada);
    expect(url).toMatch(/^https:\/\/tools\.example\/view\/[\w-]+$/);
    const followed = await follow(pages(), sealedIn(url), true, admitted);
    expect(followed?.path).toMatch(/^\/jobs\/timer_a%2Fb\?link=[\w-]{16}$/);
    expect(followed?.cookie).toMatch(
      /; Max-Age=\d+; Path=\/pages\/link\/[\w-]{16}; HttpOnly; Secure; SameSite=Strict$/,
    );
  });

  test("reveals nothing about the job, and is different each time", async () => {
    const [one, other] = await Promise.all([pages().urlOf("timer_tea", ada), pages().urlOf("timer_tea", ada)]);
    expect(one).not.toBe(other);
    expect(atob(sealedIn(one).replaceAll("-", "+").replaceAll("_", "/"))).not.toMatch(/timer|ada/);
  });

  test.each([
    ["another key", { VIEW_KEY: "l".repeat(32) }],
    ["no key", { VIEW_KEY: "" }],
    ["links switched off", { VIEW_LINKS: "off" }],
  ])("is void with %s", async (_what, env) => {
    const sealed = sealedIn(await pages().urlOf("timer_tea", ada));
    expect(await follow(pages(env), sealed, true, admitted)).toBeUndefined();
  });

  test("is void when its caller is not admitted any more, for a browser that has opened it as well", async () => {
    const sealed = sealedIn(await pages().urlOf("timer_tea", ada));
    expect(await follow(pages(), sealed, true, refusing(ada))).toBeUndefined();
    const { cookie = "" } = (await follow(pages(), sealed, true, admitted)) ?? {};
    const headers = { cookie: cookie.split(";")[0] ?? "", "sec-fetch-site": "same-origin" };
    const request = new Request("https://tools.example/pages/link/x", { headers });
    expect(await linked(pages(), request, "timer_tea", admitted)).toEqual(ada);
    expect(await linked(pages(), request, "timer_tea", refusing(ada))).toBeUndefined();
  });

  test("is void when it has expired, has been changed, or was sealed for another purpose", async () => {
    const sealed = sealedIn(await pages().urlOf("timer_tea", ada));
    for (let i = 0; i < sealed.length; i++) {
      const changed = sealed.slice(0, i) + (sealed[i] === "A" ? "B" : "A") + sealed.slice(i + 1);
      // The last character may have unused bits.
      if (i < sealed.length - 1) expect(await follow(pages(), changed, true, admitted)).toBeUndefined();
    }
    const other = await new Seal(HOSTED.VIEW_KEY).close(
      "session",
      { job: "timer_tea", caller: ada },
      Date.now() + 1_000,
    );
    expect(await follow(pages(), other, true, admitted)).toBeUndefined();
    vi.useFakeTimers({ now: Date.now() + 8 * 24 * 3_600_000, toFake: ["Date"] });
    expect(await follow(pages(), sealed, true, admitted)).toBeUndefined();
    vi.useRealTimers();
  });

  test.each([
    ["no host is configured", { PUBLIC_URL: "" }],
    ["there is no key", { VIEW_KEY: "" }],
    ["links are switched off", { VIEW_LINKS: "off" }],
    ["there are no pages", { ASSETS: undefined }],
  ])("does not exist where %s", async (_what, env) => {
    expect(await pages(env).urlOf("timer_tea", ada)).toBeUndefined();
  });

  test("is not a session: that takes a cookie, which over TLS no other host of the domain can set", async () => {
    const until = Date.now() + 60_000;
    expect(await session(pages(), "token", until, true)).toMatch(
      /^__Host-session=.*; Path=\/; HttpOnly; Secure; SameSite=Strict$/,
    );
    const [set = ""] = ((await session(pages(), "token", until, true)) ?? "").split(";");
    const from = (url: string, cookie: string) =>
      pages().withSession(new Request(url, { headers: { cookie, "sec-fetch-site": "same-origin" } }));
    expect((await from("https://tools.example/", set)).headers.get("authorization")).toBe("Bearer token");
    const tossed = set.replace("__Host-", "");
    expect((await from("https://tools.example/", tossed)).headers.has("authorization")).toBe(false);
  });

  test("is the page itself without authentication", async () => {
    const url = await pages({ AUTH_MODE: "none" }).urlOf("timer_tea", ada);
    expect(url).toBe("https://tools.example/jobs/timer_tea");
  });
});
