/** Reports the alerts of a deployment to its operators. */
import type { Alert } from "../../functions/operate/calls.ts";
import { type Finding, findings, whyNot } from "./finding.ts";

const TIMEOUT = 10_000;

/** `token` is an operator's token; undefined for the stack on this machine. */
export async function checkAlerts(edge: URL, token: string | undefined): Promise<Finding[]> {
  const { ok, skipped, warning, failed } = findings("alerts");
  try {
    const response = await fetch(new URL("/operate/overview", edge), {
      headers: token === undefined ? {} : { authorization: `Bearer ${token}` },
      signal: AbortSignal.timeout(TIMEOUT),
    });
    if (!response.ok) {
      await response.body?.cancel();
      return [skipped(`/operate answers ${response.status}: give an operator's token in OPERATOR_TOKEN`)];
    }
    const { alerts } = (await response.json()) as { alerts: Alert[] };
    if (alerts.length === 0) return [ok("none")];
    return alerts.map(({ name, says }) => {
      const isFault = name === "mixed-versions";
      return (isFault ? failed : warning)(says, `See docs/operations.md#${name}.`);
    });
  } catch (error) {
    return [skipped(`/operate does not answer: ${whyNot(error)}`)];
  }
}
