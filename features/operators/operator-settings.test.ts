import { afterEach, expect, test, vi } from "vitest";
import { OPERATORS_ROLE } from "../../core/resonate/object-address.ts";
import { Callers } from "../../functions/objects/callers.ts";
import { objectWith } from "../../test/support/object-calls.ts";
import type { OperateCalls } from "./calls.ts";
import { OperatorSettings } from "./operator-settings.ts";
import { startReporter } from "./starts.ts";

afterEach(() => void vi.useRealTimers());

test("neither a request nor a start waits long for an operators' object that does not answer", async () => {
  vi.useFakeTimers();
  const silent = {
    idFromName: () => ({}),
    get: () =>
      objectWith({
        "operators.settings": () => new Promise(() => {}),
        "operators.started": () => new Promise(() => {}),
      }),
  };
  const operators = () => new Callers(silent, "").inRole<OperateCalls>(OPERATORS_ROLE);
  const settings = new OperatorSettings(() => operators().settings(), ["eve"], 5_000);
  const reportStart = startReporter(operators);
  const answered = Promise.all([settings.get(), settings.get(), reportStart("timer", "timer_a")]);
  await vi.advanceTimersByTimeAsync(2_500);
  const known = { starts_stopped: false, blocked: ["eve"] };
  expect(await Promise.race([answered, "none yet"])).toEqual([known, known, undefined]);
});
