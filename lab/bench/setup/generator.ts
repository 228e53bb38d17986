import { fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import type { Load, Loaded } from "./load.ts";

/** The load generator's process. */
export interface Generator extends AsyncDisposable {
  /** @throws {Error} if an answer was not as expected */
  run(load: Omit<Load, "first">): Promise<Loaded>;
}

/** The numbers reserved for each run: more than a run uses, so that no two runs send the same number. All have nine digits. */
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
