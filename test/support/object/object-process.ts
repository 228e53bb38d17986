/**
 * The Resonate object in workerd, as a program with the options of the Node host and the same log line when it is ready:
 *
 *   node test/support/object/object-process.ts [--port 0] [--data DIR | --memory] [--inspector-port PORT] [--worker FILE]
 */
import { join } from "node:path";
import { parseArgs } from "node:util";
import { startEdge } from "../../../cli/launcher/local-edge.ts";

const { values } = parseArgs({
  options: {
    port: { type: "string", default: "0" },
    data: { type: "string" },
    memory: { type: "boolean", default: false },
    "inspector-port": { type: "string" },
    worker: { type: "string", default: join(import.meta.dirname, "object-worker.ts") },
  },
});

const { "inspector-port": inspectorPort, data, port, worker } = values;
const { process: workerd, url } = await startEdge({
  port: Number(port),
  // workerd has no SQL for an object in memory: state that is not to be kept is in a folder that ends with the program.
  data,
  entry: worker,
  inspectorPort: inspectorPort === undefined ? undefined : Number(inspectorPort),
  // The account's other objects are left out.
  bindings: { CALLER: "", LISTENER: "", RUNNER: "" },
});
workerd.stdout.pipe(process.stdout);
workerd.stderr.pipe(process.stderr);
console.log(JSON.stringify({ msg: "ready", url, file: data ?? ":memory:", pid: workerd.pid }));
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => workerd.stop());
process.exitCode = (await workerd.exited).exitCode ?? 0;
