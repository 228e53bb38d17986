import { expect, test } from "vitest";
import { machineClock, Wakeup } from "../clock.ts";
import { FunctionPass } from "./function-pass.ts";

test("a window closes when its outcome cannot be handed over", async () => {
  const job = { startedAt: 0, deadline: 1 };
  const pass = new FunctionPass(machineClock, new Wakeup(machineClock), job, false);
  const handed = pass.moveOn(() => {
    throw new Error("no such outcome");
  });
  await expect(handed).rejects.toThrow("no such outcome");
  expect(pass.isOpen).toBe(false);
});
