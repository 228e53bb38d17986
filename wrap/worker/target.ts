/** How a wrapped server is reached, and what a program writes beside the protocol. */
import type { Readable } from "node:stream";
import { StreamableHTTPClientTransport, type Transport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import type { Log } from "../../core/definitions/context.ts";
import type { Fetch } from "./guarded-fetch.ts";
import type { KeptProgram } from "./keeper/attach.ts";
import { MAX_LINE as MAX_MESSAGE } from "./keeper/limits.ts";
import { KeptTransport } from "./keeper/transport.ts";
import type { Session } from "./request-state.ts";

/** How much of a line that a program writes beside is logged, in characters. */
export const MAX_LINE = 500;
/** How many of those lines are logged in a second. */
const MAX_LINES = 20;

/** How a server is reached, all values filled in. */
export type Target = { url: URL; headers: Record<string, string>; fetch: Fetch } | ProgramTarget;

interface ProgramTarget extends Omit<KeptProgram, "keep" | "deployment"> {
  /** How it outlives its worker; undefined where it does not. */
  kept: Pick<KeptProgram, "keep" | "deployment"> | undefined;
}

/** A transport to it, not started. @throws {Error} saying why a program does not start */
export async function transportOf(target: Target): Promise<Transport> {
  if ("url" in target) return httpTransport(target);
  const { kept, command, args, env, cwd } = target;
  if (kept) return KeptTransport.use({ command, args, env, cwd, ...kept });
  return new StdioClientTransport({
    command,
    args: [...args],
    env,
    cwd,
    stderr: "pipe",
    maxBufferSize: MAX_MESSAGE,
  });
}

/** A transport for one request, in the session that it belongs to; undefined where that is over the connection's own. */
export function transportFor(target: Target, place: Session, own: string | undefined): Transport | undefined {
  if ("url" in target) return httpTransport(target, place);
  const { sessionId = own } = place;
  return sessionId === undefined || sessionId === own ? undefined : new KeptTransport(sessionId);
}

function httpTransport(
  { url, headers, fetch }: Extract<Target, { url: URL }>,
  more: Session = {},
): StreamableHTTPClientTransport {
  return new StreamableHTTPClientTransport(url, { fetch, requestInit: { headers }, ...more });
}

/** Writes what a program says beside the protocol to the worker's log, up to a bound; what is returned tells the last of it. */
export function logLines(stderr: Readable | null, log: Log): () => string {
  let second = 0;
  let count = 0;
  let rest = "";
  let last = "";
  stderr?.on("data", (chunk: Buffer) => {
    const lines = (rest + chunk.toString("utf8")).split("\n");
    rest = (lines.pop() ?? "").slice(0, MAX_LINE);
    for (const line of lines) {
      const now = Math.floor(Date.now() / 1_000);
      if (now !== second) [second, count] = [now, 0];
      if (line.trim() === "" || ++count > MAX_LINES) continue;
      last = line.trim().slice(0, MAX_LINE);
      log.info("wrapped server says", { says: last });
    }
  });
  return () => (rest.trim() === "" ? last : rest.trim());
}
