import { type ChildProcess, fork } from "node:child_process";
import { programPath } from "../package.ts";
import { endWithParent } from "../process/end-with-parent.ts";
import type { BuildAnswer, Part } from "./bundler-program.ts";
import type { Build } from "./dev-bundle.ts";

/**
 * Returns a function that asks the bundler program for a build into the folder `name` of `.build`. The function starts the
 * program if needed, and rejects with the problem in the sources.
 */
export function startBundler(name: string): <T>(part: Part) => Promise<Build<T>> {
  let child: ChildProcess | undefined;
  const requests = new Map<Part, PromiseWithResolvers<Build<unknown>>>();

  const start = (): ChildProcess => {
    const bundler = fork(programPath("cli/bundle/bundler-program"), [name], {
      // A Ctrl-C at the terminal does not reach a detached process.
      detached: true,
      stdio: ["ignore", "ignore", "inherit", "ipc"],
    });
    endWithParent(bundler);
    bundler.on("message", (answer: BuildAnswer) => {
      const request = requests.get(answer.part);
      requests.delete(answer.part);
      if ("build" in answer) request?.resolve(answer.build);
      else request?.reject(new Error(answer.problem));
    });
    bundler.once("exit", () => {
      child = undefined;
      for (const request of requests.values()) request.reject(new Error("The bundler ended in the middle of a build."));
      requests.clear();
    });
    return bundler;
  };

  return <T>(part: Part) => {
    child ??= start();
    const request = Promise.withResolvers<Build<unknown>>();
    requests.set(part, request);
    child.send(part);
    return request.promise as Promise<Build<T>>;
  };
}
