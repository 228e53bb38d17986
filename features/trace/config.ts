import * as z from "zod";

export const traceVariables = {
  /** Where spans of MCP requests go, by OTLP over HTTP. */
  OTEL_EXPORTER_OTLP_ENDPOINT: z.string().optional(),
};
