/** `token NAME`: prints a new static token once, and the entry that the edge needs for it. */
import { usageOf, WrongArguments } from "../arguments.ts";
import { newToken, TOKEN_NAME } from "../static-token.ts";
import { print } from "../terminal/print.ts";

export const usage = usageOf(
  "NAME",
  'NAME is the caller\'s name: 1 to 64 letters, digits, ".", "_", "@" or "-", not starting with "-".',
);

export async function run([name, ...rest]: string[]): Promise<void> {
  if (name === undefined || rest.length > 0 || !TOKEN_NAME.test(name)) throw new WrongArguments("Name one caller.");
  const { token, sha256 } = newToken();
  print(`Token for ${name}, which is stored nowhere and not shown again:

  ${token}

Add this to the list in the secret BEARER_TOKENS (a JSON list, wrangler secret put BEARER_TOKENS):

  ${JSON.stringify({ name, sha256 })}`);
}
