import { NondeterminismError } from "../../author/context.ts";
import { outside } from "../guard/guard.ts";
import type { Scope } from "./scope.ts";

export function sleep(scope: Scope, name: string, until: number | Date): Promise<void> {
  return scope.issue("sleep", name, (command) => {
    const end = typeof until === "number" ? outside(() => scope.parts.clock.now()) + until : Number(until?.getTime?.());
    if (!Number.isFinite(end)) {
      throw new NondeterminismError(`ctx.sleep("${name}"): until is ${until}; it takes milliseconds or a Date`);
    }
    // A timer has a delay of its due time less one, which cannot be negative.
    const due = Math.ceil(Math.max(end, 1));
    command.work = { do: "record", entry: { kind: "sleep", op: command.path }, when: { due } };
  });
}
