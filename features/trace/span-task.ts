/** Makes a span for each execution of a job, and exports it to an OpenTelemetry collector. */
import { traceIdIn } from "../../core/author/index.ts";
import type { WorkerFeature } from "../../core/feature.ts";
import { inSpan, spanOf } from "./spans.ts";

/** Requests to the addresses `ownOrigins` make no spans. */
export function spans(ownOrigins: readonly (string | undefined)[]): WorkerFeature {
  let stopTracing = async () => {};
  return {
    name: "trace",
    task(task, next) {
      const { promise, name, kind, lease } = task;
      const parent = spanOf(promise);
      task.log = task.log.child({ trace_id: traceIdIn(parent) });
      const attributes = {
        "messaging.system": "resonate",
        "messaging.operation.type": "process",
        "messaging.operation.name": "process",
        "messaging.destination.name": promise.tags["resonate:target"]?.split("@")[1] ?? "",
        "messaging.message.id": promise.id,
        job: name,
        "task.version": lease.version,
      };
      const options = { attributes, kind: "consumer", parent } as const;
      return inSpan(`job ${kind}`, options, next, (outcome) => ({ outcome }));
    },
    async open() {
      // Loaded only here: the exporter takes time and memory.
      const { startTracing } = await import("./tracing.ts");
      stopTracing = startTracing(ownOrigins);
    },
    close: () => stopTracing(),
  };
}
