/** Checks a worker by its health endpoint. */
import { ask, checkClock, type Finding, failed, field, ok, warning } from "./finding.ts";

/** `url`: the worker's origin or its `/health`. */
export async function checkWorker(url: URL): Promise<Finding[]> {
  const check = "worker";
  const answer = await ask(new URL("/health", url));
  if (answer.status === undefined) {
    const fix = "Check that it runs and the address: docker compose -f infra/compose.yaml port worker 8081.";
    return [failed(check, `${url.origin} cannot be reached: ${answer.reason}`, fix)];
  }
  const status = field(answer.text, "status");
  if (status === "stopping") {
    return [warning(check, "is stopping", "Another one should be there to go on with its jobs.")];
  }
  const connected = field(answer.text, "connected");
  const isWorker = status === "ok" || status === "disconnected";
  if (!isWorker || typeof connected !== "boolean") {
    const fix = "Give the address of a worker's health port (HEALTH_PORT, 8081).";
    return [failed(check, `something else answers at ${url.origin}, with ${answer.status}`, fix)];
  }
  const clock = checkClock("worker's clock", answer);
  if (connected) {
    return [ok(check, `connected to Resonate, ${field(answer.text, "running")} jobs executing`), clock];
  }
  return [
    failed(
      check,
      "runs, but is not connected to Resonate",
      "Check its RESONATE_URL and RESONATE_TOKEN; its log says why under 'connection to Resonate failed'.",
    ),
    clock,
  ];
}
