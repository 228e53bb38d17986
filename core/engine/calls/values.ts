/** `ctx.now`, `ctx.random` and `ctx.uuid`: values that are the same in each pass, without a record. */
import { seededNumber, seededUuid } from "../guard/seeded.ts";
import { AFTER_FOREIGN_AWAIT } from "../replay/determinism.ts";
import type { Scope } from "./scope.ts";

export function now(scope: Scope): number {
  checkOutsideOfSteps(scope, "now", "A step uses Date.now()");
  return scope.parts.pass.now();
}

export function random(scope: Scope): number {
  checkOutsideOfSteps(scope, "random", "Call it before the step");
  return seededNumber(scope.parts.runtime.seed, scope.nextDraw());
}

export function uuid(scope: Scope): string {
  checkOutsideOfSteps(scope, "uuid", "Call it before the step");
  return seededUuid(scope.parts.runtime.seed, scope.nextDraw());
}

/** In a step, its place among the calls would differ from pass to pass. */
function checkOutsideOfSteps({ parts }: Scope, call: string, instead: string): void {
  const { pass } = parts;
  if (!pass.isOpen)
    throw pass.ruleBroken(`ctx.${call}() was called inside of a step, or ${AFTER_FOREIGN_AWAIT}. ${instead}`);
}
