/** Checks the edge as an MCP client, with a timer that passes from the tool call through Resonate and a worker, and back. */
import { randomBytes } from "node:crypto";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
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
  const client = new Client({ name: "doctor", version: packageVersion() }, { versionNegotiation: { mode: "auto" } });
  const headers: Record<string, string> = token === undefined ? {} : { Authorization: `Bearer ${token}` };
  try {
    await client.connect(new StreamableHTTPClientTransport(url, { requestInit: { headers } }));
    const { tools } = await client.listTools();
    const revision = client.getNegotiatedProtocolVersion();
    const { name, version } = client.getServerVersion() ?? {};
    const has = (toolName: string) => tools.some((tool) => tool.name === toolName);
    if (!has("await_result")) {
      const fix = "Give the address of this product's /mcp.";
      return [mcp.failed(`${name} has no tool await_result`, fix), timer.skipped("needs the tool")];
    }
    return [
      mcp.ok(`${name} ${version}, revision ${revision}, ${tools.length} tools`),
      has("set_timer") ? await checkTimer(client, wait) : timer.skipped("this server has no tool set_timer"),
    ];
  } catch (error) {
    return [handshakeFailed(error, token !== undefined), timer.skipped("needs a connection")];
  } finally {
    await client.close();
  }
}

function handshakeFailed(error: unknown, hasToken: boolean): Finding {
  const reason = whyNot(error);
  const isRefused = /\b(401|403)\b|unauthorized|forbidden/i.test(reason);
  if (isRefused && !hasToken) return mcp.skipped("a token is needed: give one with --token or DOCTOR_TOKEN");
  const fix = isRefused
    ? "The token was refused: check that it has not expired, is meant for this deployment (audience) and has its scope, " +
      "or that its hash is in BEARER_TOKENS."
    : "Check the edge's log while you run the doctor again: npx wrangler tail.";
  return mcp.failed(reason, fix);
}

async function checkTimer(client: Client, wait: number): Promise<Finding> {
  const timer_name = `doctor-${randomBytes(6).toString("hex")}`;
  const startedAt = Date.now();
  const job = await call(client, "set_timer", { timer_name, seconds: 1 });
  if (typeof job === "string")
    return timer.failed(job, "Nothing was started. See the findings about Resonate above and below.");
  const name = String(job.promise_id);
  const answer = await call(client, "await_result", { job_names: [name], timeout_seconds: wait });
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

/** Calls a tool; returns its structured result, or the text of its error. */
async function call(
  client: Client,
  name: string,
  args: Record<string, unknown>,
): Promise<Record<string, unknown> | string> {
  try {
    const timeout = (Number(args.timeout_seconds ?? 0) + 30) * 1_000;
    const result = await client.callTool({ name, arguments: args }, { timeout });
    const [first] = result.content;
    if (result.isError) return first?.type === "text" ? first.text : `${name} failed`;
    return { ...(result.structuredContent as object | undefined) };
  } catch (error) {
    return `${name}: ${whyNot(error)}`;
  }
}
