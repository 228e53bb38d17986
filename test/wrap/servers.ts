/** The servers that tests wrap, each in its own process. */
import { join } from "node:path";
import { freePort } from "../../testing/stack/port.ts";
import { type Program, run, until } from "../../testing/stack/program.ts";

export const EVERYTHING = join(process.cwd(), "node_modules/@modelcontextprotocol/server-everything/dist/index.js");
export const FILESYSTEM = join(process.cwd(), "node_modules/@modelcontextprotocol/server-filesystem/dist/index.js");
export const COUNTING = join(process.cwd(), "test/wrap/counting.ts");

export interface HttpServer extends AsyncDisposable {
  readonly url: string;
  kill(): Promise<void>;
  start(): Promise<void>;
}

/** Runs a server that listens at `PORT`. */
export async function serve(script: string, args: string[], env: Record<string, string> = {}): Promise<HttpServer> {
  const port = await freePort();
  let server: Program;
  const start = async () => {
    server = run(script, { args, env: { ...env, PORT: String(port) } });
    await until("the server to listen", () => server.output().includes("listening"));
  };
  await start();
  const kill = async () => server[Symbol.asyncDispose]();
  return { url: `http://127.0.0.1:${port}/mcp`, kill, start, [Symbol.asyncDispose]: kill };
}
