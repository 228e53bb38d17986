import { type ChildProcess, fork } from "node:child_process";
import { programPath } from "../package.ts";
import { endWithParent } from "../process/end-with-parent.ts";
import type { BuildAnswer, Part } from "./bundler-program.ts";
import type { Built } from "./dev-bundle.ts";

/**
 * Returns a function that asks the bundler program for a build into the folder `name` of `.build`. The function starts the
 * program if needed, and rejects with the problem in the sources.
 */
export function startBundler(name: string): <T>(part: Part) => Promise<Built<T>> {
  let child: ChildProcess | undefined;
  const waiting = new Map<Part, PromiseWithResolvers<Built<unknown>>>();

  const start = (): ChildProcess => {
    const started = fork(programPath("cli/bundle/bundler-program"), [name], {
      // A Ctrl-C at the terminal does not reach a detached process.
      detached: true,
      stdio: ["ignore", "ignore", "inherit", "ipc"],
    });
    endWithParent(started);
    started.on("message", (answer: BuildAnswer) => {
      const build = waiting.get(answer.part);
      waiting.delete(answer.part);
      if ("built" in answer) build?.resolve(answer.built);
      else build?.reject(new Error(answer.problem));
    });
    started.once("exit", () => {
      child = undefined;
      for (const build of waiting.values()) build.reject(new Error("The bundler ended in the middle of a build."));
      waiting.clear();
    });
    return started;
  };

  return <T>(part: Part) => {
    child ??= start();
    const build = Promise.withResolvers<Built<unknown>>();
    waiting.set(part, build);
    child.send(part);
    return build.promise as Promise<Built<T>>;
  };
}
