/** The figures of the Resonate server, of each kind, and of callers that operators see. */
import { createHash } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test, vi } from "vitest";
import { until } from "../../testing/stack/program.ts";
import { bearerBindings, callerAt } from "../auth/support.ts";
import { isAccount } from "../support/account.ts";
import { operatorAt, startOperated } from "./support.ts";

vi.setConfig({ testTimeout: 120_000 });

const TOKEN = "operator-token-of-olga";

test("the overview has the server's release and latency, its size and cost if known, and the rows of each caller", async () => {
  const isReleased = Boolean(process.env.RESONATE_URL);
  const data = await mkdtemp(join(tmpdir(), "operated-"));
  const sha256 = createHash("sha256").update(TOKEN).digest("hex");
  const OPERATOR_TOKENS = JSON.stringify([{ name: "olga", sha256 }]);
  try {
    await using stack = await startOperated({
      bindings: { ...bearerBindings({ ada: "static-token-of-ada" }), OPERATOR_TOKENS },
      ...(!isReleased && !isAccount && { own: { data } }),
    });
    const operator = operatorAt(stack.origin, TOKEN);
    const ada = callerAt(stack.url, "static-token-of-ada");
    const { resonate: before } = await operator.get("overview");
    for (const timer_name of ["one", "two", "three"]) await ada.call("set_timer", { timer_name, seconds: 3_600 });
    // The numbers of started jobs are reported once a minute.
    const caller = await until("the caller's figures", async () => (await operator.get("overview")).callers[0]);
    expect(caller).toMatchObject({ label: "ada", started: expect.any(Number) });
    expect(caller.rows).toBeGreaterThan(0);
    const { resonate } = await operator.get("overview");
    expect(resonate.ms).toBeGreaterThanOrEqual(0);
    if (isReleased) {
      expect(["0.9.8", "0.10"]).toContain(resonate.release);
      expect(resonate).not.toHaveProperty("size");
      return;
    }
    expect(resonate.release).toBe(isAccount ? "account" : "embedded");
    expect(resonate.size).toBeGreaterThan(0);
    expect(resonate.maxBytes).toBeGreaterThan(resonate.size);
    // An embedded server costs nothing.
    if (!isAccount) return expect(resonate).not.toHaveProperty("today");
    for (const what of ["requests", "written", "read", "awake"])
      expect(resonate.today[what]).toBeGreaterThan(before.today[what]);
  } finally {
    await rm(data, { recursive: true, force: true });
  }
});
