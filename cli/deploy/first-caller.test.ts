import { syncBuiltinESMExports } from "node:module";
import os from "node:os";
import { expect, test, vi } from "vitest";
import { firstCaller } from "./first-caller.ts";

test("the first caller of a user without a name, such as that of a container, is the owner", async () => {
  const { userInfo } = os;
  const nameless = () => {
    throw new Error("uv_os_get_passwd returned ENOENT");
  };
  Object.assign(os, { userInfo: nameless });
  syncBuiltinESMExports();
  vi.stubEnv("USER", undefined);
  try {
    await using caller = await firstCaller();
    expect(caller.name).toBe("owner");
  } finally {
    vi.unstubAllEnvs();
    Object.assign(os, { userInfo });
    syncBuiltinESMExports();
  }
});
