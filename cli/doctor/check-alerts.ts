/** Reports the alerts of a deployment to its operators. */
import type { Alert } from "../../core/jobs/index.ts";
import { OperatorClient } from "../backup/operator-client.ts";
import { type Finding, findings } from "./finding.ts";

/** `token` is an operator's token; empty for the stack on this machine. */
export async function checkAlerts(edge: URL, token: string): Promise<Finding[]> {
  const { ok, skipped, warning, failed } = findings("alerts");
  try {
    const { alerts } = await new OperatorClient(edge.origin, token).ask("GET", "/operate/overview");
    if (alerts.length === 0) return [ok("none")];
    return alerts.map(({ name, says }: Alert) => {
      const isFault = name === "mixed-versions";
      return (isFault ? failed : warning)(says, `See docs/operations.md#${name}.`);
    });
  } catch (error) {
    return [skipped(`/operate: ${(error as Error).message}`)];
  }
}
