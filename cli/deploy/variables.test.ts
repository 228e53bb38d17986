import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { readOptions } from "./deploy-options.ts";
import { secretsFor, usesTokens } from "./variables.ts";

const mode = (text: string) => ({ name: "AUTH_MODE", type: "plain_text", text });
const secret = (name: string) => ({ name, type: "secret_text" });

test("callers send a token of the deployment if its mode is bearer, or secret beside a list of tokens", () => {
  const tokens = secret("BEARER_TOKENS");
  expect([usesTokens([mode("bearer"), tokens]), usesTokens([secret("AUTH_MODE"), tokens])]).toEqual([true, true]);
  expect([usesTokens([mode("oauth"), tokens]), usesTokens([secret("AUTH_MODE")])]).toEqual([false, false]);
  expect([usesTokens([mode("none")]), usesTokens(undefined)]).toEqual([false, false]);
});

test("secrets come from a file in either form that wrangler reads", async () => {
  const folder = await mkdtemp(join(tmpdir(), "secrets-"));
  const read = async (text: string, args: (file: string) => string[]) => {
    const file = join(folder, "a=b");
    await writeFile(file, text);
    return secretsFor(readOptions(args(file)));
  };
  const secrets = [secret("A"), secret("B")];
  expect(await read("# a comment\nA=1\nB='2'\n", (file) => ["--secrets-file", file])).toEqual(secrets);
  expect(await read('{"A":"1","B":"2"}', (file) => [`--secrets-file=${file}`])).toEqual(secrets);
  expect(secretsFor(readOptions(["--dry-run"]))).toEqual([]);
  await rm(folder, { recursive: true });
});
