import { outside } from "../guard/guard.ts";
import type { Scope } from "./scope.ts";

export function progress(scope: Scope, done: number | string, total?: number, message?: string): void {
  outside(() => scope.parts.report.progress(done, total, message));
}
