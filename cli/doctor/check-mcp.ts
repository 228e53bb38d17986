/** Checks the edge as an MCP client, with a timer that passes from the tool call through Resonate and a worker, and back. */
import { randomBytes } from "node:crypto";
import { Connection, RequestFailed, ToolRefused } from "../../client/connection.ts";
import { packageVersion } from "../package.ts";
import { type Finding, findings, whyNot } from "./finding.ts";

const mcp = findings("MCP");
const timer = findings("one-second timer");

interface McpCheck {
  url: URL;
  token: string | undefined;
  /** How long the timer may take, in seconds. */
  wait: number;
}

export async function checkMcp({ url, token, wait }: McpCheck): Promise<Finding[]> {
  const connection = new Connection({ url, token, name: "doctor", version: packageVersion(), retryMs: 0 });
  try {
    const { tools, revision, server } = await connection.ask(async (client) => ({
      tools: (await client.listTools()).tools,
      revision: client.getNegotiatedProtocolVersion(),
      server: client.getServerVersion(),
    }));
    const { name, version } = server ?? {};
    const has = (toolName: string) => tools.some((tool) => tool.name === toolName);
    if (!has("await_result")) {
      const fix = "Give the address of this product's /mcp.";
      return [mcp.failed(`${name} has no tool await_result`, fix), timer.skipped("needs the tool")];
    }
    return [
      mcp.ok(`${name} ${version}, revision ${revision}, ${tools.length} tools`),
      has("set_timer") ? await checkTimer(connection, wait) : timer.skipped("this server has no tool set_timer"),
    ];
  } catch (error) {
    return [handshakeFailed(error, token !== undefined), timer.skipped("needs a connection")];
  } finally {
    await connection.close();
  }
}

function handshakeFailed(error: unknown, hasToken: boolean): Finding {
  const isRefused = error instanceof RequestFailed && error.why === "token refused";
  if (isRefused && !hasToken) return mcp.skipped("a token is needed: give one with --token or DOCTOR_TOKEN");
  const fix = isRefused
    ? "The token was refused: check that it has not expired, is meant for this deployment (audience) and has its scope, " +
      "or that its hash is in BEARER_TOKENS."
    : "Check the edge's log while you run the doctor again: npx wrangler tail.";
  return mcp.failed(reasonOf(error), fix);
}

async function checkTimer(connection: Connection, wait: number): Promise<Finding> {
  const timer_name = `doctor-${randomBytes(6).toString("hex")}`;
  const startedAt = Date.now();
  const job = await call(connection, "set_timer", { timer_name, seconds: 1 });
  if (typeof job === "string")
    return timer.failed(job, "Nothing was started. See the findings about Resonate above and below.");
  const name = String(job.promise_id);
  const answer = await call(connection, "await_result", { job_names: [name], timeout_seconds: wait }, wait);
  if (typeof answer === "string") {
    return timer.failed(answer, "The timer was set and could not be waited for. See the findings about Resonate.");
  }
  const { results = {}, errors = {} } = answer as { results?: object; errors?: Record<string, unknown> };
  if (name in results) return timer.ok(`came through in ${((Date.now() - startedAt) / 1_000).toFixed(1)} s`);
  if (name in errors) {
    return timer.failed(`${errors[name]}`, "Check the worker's log for this job, and the clocks.");
  }
  return timer.failed(
    `set, but no worker has fired it after ${wait} s`,
    "Check that a worker runs (docker compose -f infra/compose.yaml ps worker), that its log says ready, and that its " +
      "RESONATE_GROUP and RESONATE_NAMESPACE are the edge's. A worker that was killed lately is waited for up to a minute.",
  );
}

/** Calls a tool that may wait for `seconds`; returns its structured result, or the text of its error. */
async function call(
  connection: Connection,
  name: string,
  args: object,
  seconds = 0,
): Promise<Record<string, unknown> | string> {
  try {
    return await connection.call(name, args, { seconds });
  } catch (error) {
    return error instanceof ToolRefused ? error.message : `${name}: ${reasonOf(error)}`;
  }
}

/** Why a request failed, without the address, which the doctor's user knows. */
const reasonOf = (error: unknown): string => whyNot(error instanceof RequestFailed ? error.cause : error);
