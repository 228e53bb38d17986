import { startChild } from "../../cli/process/child.ts";
import { freePort } from "../../testing/stack/port.ts";
import { waitForAnswer, watch } from "../../testing/stack/program.ts";

/** Starts a standalone Resonate server, which keeps its SQLite file in the folder `data`. Disposing of it kills it. */
export async function startRealServer(
  program: string,
  data: string,
  wanted?: number,
): Promise<AsyncDisposable & { url: string }> {
  const port = wanted ?? (await freePort());
  const options = ["--server-bind", "127.0.0.1", "--server-port", `${port}`, "--observability-metrics-port", "0"];
  const args = ["serve", "--storage-type", "sqlite", "--level", "warn", ...options];
  const env = { ...process.env, RESONATE_TASKS__RETRY_TIMEOUT: "5000" };
  const server = watch(startChild(program, args, { env, cwd: data, grace: 1_000 }));
  const url = `http://127.0.0.1:${port}`;
  await waitForAnswer(`${url}/ready`, server);
  return { url, [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() };
}
