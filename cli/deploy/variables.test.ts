import { expect, test } from "vitest";
import { takesTokens } from "./variables.ts";

const mode = (text: string) => ({ name: "AUTH_MODE", type: "plain_text", text });
const secret = (name: string) => ({ name, type: "secret_text" });

test("callers send a token of the deployment if its mode is bearer, or secret beside a list of tokens", () => {
  const tokens = secret("BEARER_TOKENS");
  expect([takesTokens([mode("bearer"), tokens]), takesTokens([secret("AUTH_MODE"), tokens])]).toEqual([true, true]);
  expect([takesTokens([mode("oauth"), tokens]), takesTokens([secret("AUTH_MODE")])]).toEqual([false, false]);
  expect([takesTokens([mode("none")]), takesTokens(undefined)]).toEqual([false, false]);
});
