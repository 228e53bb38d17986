import { serverUrl } from "../../core/variables.ts";

export const workerReportVariables = {
  /** The address at which this worker reports to the edge; `PUBLIC_URL` by default. */
  EDGE_URL: serverUrl.optional(),
};
