import { expect, test } from "vitest";
import { ANYONE, callerOf } from "../../core/author/caller.ts";
import { isBlocked, isKeyBlocked } from "./blocked.ts";

const ISSUER = "https://issuer.example";

test("each name by which a caller is blocked also blocks its key, and blocks no other caller", async () => {
  const signedIn = await callerOf(JSON.stringify([ISSUER, "sub-1"]));
  for (const [caller, names] of [
    [await callerOf("ada", "ada"), ["ada"]],
    [signedIn, ["sub-1", signedIn.label, signedIn.id]],
  ] as const)
    for (const name of names) {
      const blocked = ["someone", name];
      expect([name, isBlocked(caller, blocked), await isKeyBlocked(caller.key, blocked, ISSUER)]).toEqual([
        ...[name, true, true],
      ]);
      for (const { key } of [await callerOf("bob", "bob"), await callerOf('["https://other.example","sub-1"]'), ANYONE])
        expect(await isKeyBlocked(key, blocked, ISSUER)).toBe(false);
    }
});
