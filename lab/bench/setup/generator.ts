import { fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import type { Load, Loaded } from "./load.ts";

/** The load generator's process, seen from here. */
export interface Generator extends AsyncDisposable {
  /** @throws {Error} when a request was not answered as expected */
  run(load: Omit<Load, "first">): Promise<Loaded>;
}

/** More than one run can use up, so that no two runs send the same number. All have nine digits. */
const RUN = 500_000;

export function startGenerator(): Generator {
  const child = fork(join(import.meta.dirname, "load.ts"), { serialization: "advanced" });
  let first = 100_000_001;
  return {
    async run(load) {
      const answered = once(child, "message");
      child.send({ ...load, first });
      first += RUN;
      const [loaded] = (await answered) as [Loaded];
      if (loaded.failure !== undefined || loaded.requests === 0) {
        throw new Error(`The load on ${load.url} failed: ${loaded.failure ?? "no request was answered"}`);
      }
      return loaded;
    },
    async [Symbol.asyncDispose]() {
      const exited = once(child, "exit");
      child.disconnect();
      await exited;
    },
  };
}
