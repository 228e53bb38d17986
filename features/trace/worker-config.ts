import { serverUrl } from "../../core/variables.ts";

export const spanVariables = {
  /** The collector of traces, by OTLP over HTTP. The exporter reads this and related variables itself. */
  OTEL_EXPORTER_OTLP_ENDPOINT: serverUrl.optional(),
};
