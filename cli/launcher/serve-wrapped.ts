/** The part of `wrap` that differs from `start`: the prebuilt edge, replaced when the wrapped server's tools change. */
import { join } from "node:path";
import getPort from "get-port";
import { prebuiltEdge } from "../build/prebuilt-edge.ts";
import { ReplaceableService } from "../process/replaceable-service.ts";
import { openReverseProxy } from "../process/reverse-proxy.ts";
import { watchFiles } from "../process/watch-files.ts";
import { FILES } from "../wrap/wrap-project.ts";
import { type DevOptions, EDGE_PATIENCE, LAST_ANSWERS } from "./dev.ts";
import { HOST } from "./stack.ts";

/** Starts the edge, and replaces it when the file of the tools changes; resolves when it is up for the first time. */
export async function serveWrapped(options: Omit<DevOptions, "data">): Promise<void> {
  const { project, stack, ports, say, listening, running } = options;
  const { WRAP_CALLS = "", WRAP_CALLS_TOKEN = "" } = process.env;
  const bindings = { ...options.bindings, WRAP_CALLS, WRAP_CALLS_TOKEN };
  const data = {
    WRAP_OPTIONS: join(project.root, FILES.options),
    WRAP_SNAPSHOT: join(project.root, FILES.snapshot),
  };
  const bundle = await prebuiltEdge(data);
  const edge = new ReplaceableService(await openReverseProxy(HOST, ports.edge), say);
  running.unshift({ stop: () => edge.stop(EDGE_PATIENCE) });
  const replace = async () => {
    const port = await getPort({ host: HOST });
    await edge.replace({ ...stack.edge(bundle, port, bindings, LAST_ANSWERS), onLine: listening("edge") }, port);
  };
  await replace();

  const watcher = watchFiles(project.root, [], (paths) => {
    if (!paths.has(data.WRAP_SNAPSHOT)) return;
    replace().then(
      () => say("The server's tools have changed, and what may be is listed anew."),
      (error: Error) => say(`The server's tools have changed, and cannot be listed: ${error.message}`),
    );
  });
  running.unshift({ stop: async () => watcher.close() });
}
