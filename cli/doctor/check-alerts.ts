/** Tells what a deployment alerts its operators of. */
import type { Alert } from "../../functions/operate/calls.ts";
import { type Finding, failed, ok, skipped, warning, whyNot } from "./finding.ts";

const TIMEOUT = 10_000;

/** `token`: an operator's; undefined for this machine's user. */
export async function checkAlerts(edge: URL, token: string | undefined): Promise<Finding[]> {
  const check = "alerts";
  try {
    const response = await fetch(new URL("/operate/overview", edge), {
      headers: token === undefined ? {} : { authorization: `Bearer ${token}` },
      signal: AbortSignal.timeout(TIMEOUT),
    });
    if (!response.ok) {
      await response.body?.cancel();
      return [skipped(check, `/operate answers ${response.status}: give an operator's token in OPERATOR_TOKEN`)];
    }
    const { alerts } = (await response.json()) as { alerts: Alert[] };
    if (alerts.length === 0) return [ok(check, "none")];
    return alerts.map(({ name, says }) => {
      const isFault = name === "mixed-versions";
      return (isFault ? failed : warning)(check, says, `See docs/operations.md#${name}.`);
    });
  } catch (error) {
    return [skipped(check, `/operate does not answer: ${whyNot(error)}`)];
  }
}
