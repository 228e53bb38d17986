import { expect, test } from "vitest";
import { ANYONE, callerOf } from "../../core/author/caller.ts";
import { blockedCallers, listedCallers, oauthId, refusalBy } from "./admission.ts";
import type { AuthConfig } from "./auth-config.ts";

const OAUTH_ISSUER = "https://issuer.example";
const BEARER = { AUTH_MODE: "bearer", BEARER_TOKENS: [{ name: "ada" }, { name: "bob" }] } as AuthConfig;
const OAUTH = { AUTH_MODE: "oauth", OAUTH_ISSUER } as AuthConfig;
const OPEN: AuthConfig = { AUTH_MODE: "none" };

const ada = await callerOf("ada", "ada");
const signedIn = await callerOf(oauthId(OAUTH_ISSUER, "sub-1"));

test.each([
  ["a static token's caller", BEARER, ada, ["ada", ada.key, ada.key.slice(1, -1)]],
  ["an OAuth caller", OAUTH, signedIn, ["sub-1", signedIn.label, signedIn.id, signedIn.key]],
  ["everybody, without authentication,", OPEN, ANYONE, ["anyone"]],
])("%s is blocked by each of its names, and no other caller is", async (_what, auth, caller, names) => {
  const others = [await callerOf("bob", "bob"), await callerOf(oauthId("https://other.example", "sub-1")), ANYONE];
  for (const name of names) {
    const refusalOf = blockedCallers(auth, async () => ["someone", name]);
    expect(await refusalOf(caller.key)).toBe("is blocked");
    for (const { key } of others) if (key !== caller.key) expect(await refusalOf(key)).toBeUndefined();
  }
});

test("a block begins and ends with the list of names", async () => {
  let names: string[] = [];
  const refusalOf = blockedCallers(BEARER, async () => names);
  expect(await refusalOf(ada.key)).toBeUndefined();
  names = ["ada"];
  expect(await refusalOf(ada.key)).toBe("is blocked");
  names = [];
  expect(await refusalOf(ada.key)).toBeUndefined();
});

test("a static token's caller is admitted while its token is listed, an OAuth caller until it is blocked", async () => {
  const gone = (await callerOf("gone")).key;
  expect(await listedCallers(BEARER)(ada.key)).toBeUndefined();
  expect(await listedCallers(BEARER)(gone)).toBe("has no token any more");
  expect(await listedCallers(OPEN)(gone)).toBe("has no token any more");
  expect(await listedCallers(OAUTH)(gone)).toBeUndefined();
  for (const auth of [BEARER, OAUTH, OPEN]) expect(await listedCallers(auth)(ANYONE.key)).toBeUndefined();
});

test("the first reason of several checks is given", async () => {
  const refusalOf = refusalBy([async () => undefined, async (key) => key && "has ended it", async () => "late"]);
  expect(await refusalOf("c")).toBe("has ended it");
});
