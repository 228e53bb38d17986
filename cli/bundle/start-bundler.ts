import { type ChildProcess, fork } from "node:child_process";
import { programPath } from "../package.ts";
import { endWithParent } from "../process/end-with-parent.ts";
import type { BuildAnswer, BuildRequest } from "./bundler-program.ts";
import type { Built } from "./dev-bundle.ts";

/**
 * Returns a function that asks the bundler program for a build into the folder `name` of `.build`. The function starts the
 * program if needed, and rejects with the problem in the sources.
 */
export function startBundler(name: string): <T>(part: BuildRequest["part"]) => Promise<Built<T>> {
  let child: ChildProcess | undefined;
  let ready: Promise<void>;
  let count = 0;
  const waiting = new Map<number, PromiseWithResolvers<Built<unknown>>>();

  const start = (): ChildProcess => {
    const started = fork(programPath("cli/bundle/bundler-program"), [name], {
      // A Ctrl-C at the terminal does not reach a detached process.
      detached: true,
      stdio: ["ignore", "ignore", "inherit", "ipc"],
    });
    endWithParent(started);
    const isReady = Promise.withResolvers<void>();
    ready = isReady.promise;
    started.on("message", (message: "ready" | BuildAnswer) => {
      if (message === "ready") return isReady.resolve();
      const build = waiting.get(message.id);
      waiting.delete(message.id);
      if ("built" in message) build?.resolve(message.built);
      else build?.reject(new Error(message.problem));
    });
    started.once("exit", () => {
      child = undefined;
      isReady.resolve();
      for (const build of waiting.values()) build.reject(new Error("The bundler ended in the middle of a build."));
      waiting.clear();
    });
    return started;
  };

  return async <T>(part: BuildRequest["part"]) => {
    child ??= start();
    const build = Promise.withResolvers<Built<unknown>>();
    const id = ++count;
    waiting.set(id, build);
    await ready;
    child?.send({ id, part } satisfies BuildRequest);
    return build.promise as Promise<Built<T>>;
  };
}
