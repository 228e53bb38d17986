import { afterEach, expect, test, vi } from "vitest";
import { callsOf } from "../../core/resonate/object-calls.ts";
import { Callers } from "../../functions/objects/callers.ts";
import { OperatorSettings } from "./operator-settings.ts";

afterEach(() => void vi.useRealTimers());

test("neither a request nor a start waits long for an operators' object that does not answer", async () => {
  vi.useFakeTimers();
  const silent = { idFromName: () => ({}), get: () => callsOf({ operate: () => new Promise(() => {}) }) };
  const callers = new Callers(silent, "");
  const settings = new OperatorSettings(() => callers.operate("settings"), ["eve"], 5_000);
  const answered = Promise.all([settings.get(), settings.get(), callers.reportStart("timer", "timer_a")]);
  await vi.advanceTimersByTimeAsync(2_500);
  const known = { starts_stopped: false, blocked: ["eve"] };
  expect(await Promise.race([answered, "none yet"])).toEqual([known, known, undefined]);
});
