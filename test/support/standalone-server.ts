import { tmpdir } from "node:os";
import { startChild } from "../../cli/process/child.ts";
import { freePort } from "../../testing/stack/port.ts";
import { waitForAnswer, watch } from "../../testing/stack/program.ts";

/**
 * Starts a standalone Resonate server, which keeps its SQLite file in the folder `data`, or everything in memory if that is
 * undefined. Disposing of it kills it.
 */
export async function startStandaloneServer(
  program: string,
  data: string | undefined,
  wanted?: number,
): Promise<AsyncDisposable & { url: string }> {
  const port = wanted ?? (await freePort());
  const options = ["--server-bind", "127.0.0.1", "--server-port", `${port}`, "--observability-metrics-port", "0"];
  const command = data === undefined ? ["dev"] : ["serve", "--storage-type", "sqlite"];
  const args = [...command, "--level", "warn", ...options];
  const env = { ...process.env, RESONATE_TASKS__RETRY_TIMEOUT: "5000" };
  const server = watch(startChild(program, args, { env, cwd: data ?? tmpdir(), grace: 1_000 }));
  const url = `http://127.0.0.1:${port}`;
  await waitForAnswer(`${url}/ready`, server);
  return { url, [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() };
}
