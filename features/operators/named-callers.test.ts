import { expect, test } from "vitest";
import { ANYONE, callerOf } from "../../core/author/caller.ts";
import { oauthId } from "../../functions/auth/admission.ts";
import type { AuthConfig } from "../../functions/auth/auth-config.ts";
import { openTables } from "../../test/support/open-tables.ts";
import { NamedCallers } from "./named-callers.ts";
import { OPERATE_TABLES, OperateTables } from "./tables.ts";

const OAUTH_ISSUER = "https://issuer.example";
const BEARER = { AUTH_MODE: "bearer", BEARER_TOKENS: [{ name: "eve" }, { name: "eva.b" }] } as AuthConfig;
const OAUTH = { AUTH_MODE: "oauth", OAUTH_ISSUER } as AuthConfig;

/** Finds callers of a deployment in which those with these keys have started jobs. */
function scene(auth: AuthConfig, keys: readonly string[] = []) {
  const tables = new OperateTables(openTables([OPERATE_TABLES]));
  for (const key of keys) tables.setUsage({ key, started: 1, running: 0, bytes: 0, failing: 0, rows: 0 }, Date.now());
  return new NamedCallers(auth, tables);
}

test("a caller with a static token is found by its name, its key and the hash in it, and nobody else is", async () => {
  const callers = scene(BEARER);
  const { key } = await callerOf("eve");
  for (const name of ["eve", key, key.slice(1, -1)]) expect(await callers.find(name)).toEqual({ key, label: "eve" });
  for (const name of [" eve", "Eve", "eve ", "EVE.", "ｅｖｅ"])
    expect(await callers.find(name)).toEqual({ refused: expect.stringMatching(/^No caller.* Like it: eve\.$/) });
  for (const name of ["mallory", "anyone", "c.", `c${"A".repeat(16)}.`, `${key}tea_1`])
    expect(await callers.find(name)).toEqual({ refused: expect.stringMatching(/^No caller has the name .*"\.$/) });
});

test("a caller whose token is gone is found while it is known by its jobs", async () => {
  const { key } = await callerOf("gone");
  expect(await scene(BEARER, [key]).find("gone")).toEqual({ key, label: key.slice(1, -1) });
  expect(await scene(BEARER).find("gone")).toHaveProperty("refused");
});

test("an OAuth caller is found by its subject, its id and its hash, and a mistyped hash is refused", async () => {
  const id = oauthId(OAUTH_ISSUER, "sub-1");
  const { key, label } = await callerOf(id);
  const callers = scene(OAUTH, [key]);
  for (const name of ["sub-1", id, key, label]) expect(await callers.find(name)).toEqual({ key, label });
  const mistyped = label.slice(0, -1) + (label.endsWith("A") ? "B" : "A");
  expect(await callers.find(mistyped)).toEqual({ refused: expect.stringContaining(`Like it: ${label}.`) });
  expect(await callers.find("sub-2")).toHaveProperty("refused");
  const unseen = await callerOf(oauthId(OAUTH_ISSUER, "without jobs"));
  expect(await callers.find(unseen.label)).toEqual({ key: unseen.key, label: unseen.label });
});

test("without authentication the one caller is anyone", async () => {
  const callers = scene({ AUTH_MODE: "none" });
  expect(await callers.find("anyone")).toMatchObject({ key: ANYONE.key, label: "anyone" });
  expect(await callers.find("ada")).toEqual({ refused: expect.stringContaining("Like it: anyone.") });
});
