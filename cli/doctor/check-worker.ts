/** Checks a worker by its health endpoint. */
import { ask, checkClock, type Finding, field, findings } from "./finding.ts";

/** `url` is the address of the worker's health endpoint, with or without `/health`. */
export async function checkWorker(url: URL): Promise<Finding[]> {
  const { ok, warning, failed } = findings("worker");
  const answer = await ask(new URL("/health", url));
  if (answer.status === undefined) {
    const fix = "Check that it runs and the address: docker compose -f infra/compose.yaml port worker 8081.";
    return [failed(`${url.origin} cannot be reached: ${answer.reason}`, fix)];
  }
  const status = field(answer.text, "status");
  if (status === "stopping") {
    return [warning("is stopping", "Another one should be there to continue its jobs.")];
  }
  const connected = field(answer.text, "connected");
  const isWorker = status === "ok" || status === "disconnected";
  if (!isWorker || typeof connected !== "boolean") {
    const fix = "Give the address of a worker's health port (HEALTH_PORT, 8081).";
    return [failed(`something else answers at ${url.origin}, with ${answer.status}`, fix)];
  }
  const clock = checkClock("worker's clock", answer);
  if (connected) {
    return [ok(`connected to Resonate, ${field(answer.text, "running")} jobs executing`), clock];
  }
  return [
    failed(
      "runs, but is not connected to Resonate",
      "Check its RESONATE_URL and RESONATE_TOKEN; its log says why under 'connection to Resonate failed'.",
    ),
    clock,
  ];
}
