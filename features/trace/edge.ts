/** Makes requests parts of their callers' traces, and exports a span for each MCP request if there is a collector. */
import { traceparentIn } from "../../core/author/index.ts";
import type { EdgeFeature } from "../../core/feature.ts";
import type { RequestTrace } from "../../core/tools/index.ts";
import type { RequestSpan } from "./export-span.ts";

/** `exportSpan`: sends the span of an MCP request; undefined if none are exported. */
export function traces(exportSpan?: (span: RequestSpan) => Promise<void>): EdgeFeature {
  const traceOf = exportSpan ? spanBelow : callersOwn;
  return {
    name: "trace",
    async middleware(c, next) {
      const traceparent = c.req.header("traceparent");
      const isExported = exportSpan !== undefined && c.req.path === "/mcp";
      if (traceparent === undefined && !isExported) return next();
      const { requestLog } = c.var;
      requestLog.trace = (isExported ? spanBelow : callersOwn)(traceparentIn(traceparent));
      c.set("requester", { ...c.var.requester, traceparent: () => requestLog.trace?.traceparent });
      if (isExported)
        requestLog.onWritten((entry) => {
          const { trace } = requestLog;
          if (trace?.traceparent.endsWith("1")) c.executionCtx.waitUntil(exportSpan({ ...entry, ...trace }));
        });
      return next();
    },
    /** A request names its trace in `_meta` as well. */
    note(_what, { _meta }: { _meta?: { traceparent?: unknown } }, scope) {
      const parent = _meta?.traceparent === undefined ? undefined : traceparentIn(_meta.traceparent);
      if (parent === undefined) return;
      const trace = traceOf(parent);
      scope.requestLog.trace = trace;
      scope.store = scope.store.with({ traceparent: () => trace?.traceparent });
    },
  };
}

/** The span of the caller, if it names one. */
const callersOwn = (parent: string | undefined): RequestTrace | undefined =>
  parent === undefined ? undefined : { traceparent: parent, parent: undefined };

/** A span of the request itself, below the one of the caller if it names one. */
function spanBelow(parent: string | undefined): RequestTrace {
  const newTrace = crypto.randomUUID().replaceAll("-", "");
  return {
    traceparent: `${parent?.slice(0, 36) ?? `00-${newTrace}-`}${newTrace.slice(16)}-${parent?.slice(53) ?? "01"}`,
    parent,
  };
}
