/**
 * `npm run conformance:events [-- --apart]`: a deployment for public conformance scenarios of events, until Ctrl-C. It prints
 * its MCP endpoint. Requests without a token belong to one caller, whose jobs end all the time. The endpoint lists the scenarios'
 * control tools (`events_conformance_…`) beside its own; each of them provokes its event through a real cause. Without `--apart`
 * the deployment runs as in an account, where operators forget, block and restore; with it, it has a separate Resonate server,
 * which can be out of reach.
 */
import { randomBytes } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import type { IncomingMessage, ServerResponse } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { setTimeout as delay } from "node:timers/promises";
import { parseArgs } from "node:util";
import { execa } from "execa";
import { type EdgeProcess, startEdge } from "../../cli/launcher/local-edge.ts";
import { newToken } from "../../cli/static-token.ts";
import { bearer, bearerBindings } from "../../test/auth/support.ts";
import { newSecret } from "../../test/events/receiver.ts";
import { eventsAt } from "../../test/events/support.ts";
import { type Gate, startGate } from "../../test/support/gate.ts";
import { startResonate } from "../../test/support/resonate.ts";
import { serveHttp } from "../../testing/stack/http-server.ts";

const { values } = parseArgs({ options: { apart: { type: "boolean", default: false } } });

const TOKENS = { suite: "token-of-the-suite", other: "token-of-another" };

/** How long the Resonate server is out of reach, from the first call on, in milliseconds. */
const OUTAGE = 4_000;

/** The pause between two jobs that end, in milliseconds. */
const BETWEEN = 1_500;

await using deployment = await startControlled(values.apart);
console.log(deployment.url);
await new Promise((resolve) => process.once("SIGINT", resolve));

type Control = (args: Record<string, string>) => Promise<string> | string;

interface Controlled extends AsyncDisposable {
  readonly url: string;
}

/** `apart`: with a separate Resonate server, which can be out of reach; otherwise as in an account, which can be operated. */
async function startControlled(apart: boolean): Promise<Controlled> {
  await using started = new AsyncDisposableStack();
  const data = await mkdtemp(join(tmpdir(), "controlled-"));
  started.defer(() => rm(data, { recursive: true, force: true }));
  const operator = newToken();
  const gate: Gate | undefined = apart
    ? started.use(await startGate(started.use(await startResonate({ own: true })).url))
    : undefined;
  const bindings: Record<string, string> = {
    ...bearerBindings(TOKENS),
    EVENT_ERRORS: "sketch",
    RATE_LIMIT: "0",
    MAX_JOBS: "0",
    TASK_KEY: randomBytes(32).toString("hex"),
    VIEW_KEY: "v".repeat(32),
    ALLOWED_HOSTS: "127.0.0.1,localhost",
    ...(gate
      ? { RESONATE_URL: gate.url }
      : { RESONATE_PUBLIC: "1", OPERATOR_TOKENS: JSON.stringify([{ name: "op", sha256: operator.sha256 }]) }),
  };
  let generation = 1;
  let folder = "first";
  /** Whether no job may be started, because a server must be restored before it has any. */
  let isPaused = false;
  let edge: EdgeProcess = await startEdge({ port: 0, data: join(data, folder), bindings });
  const { port } = edge;
  started.defer(() => edge[Symbol.asyncDispose]());
  const restart = async () => {
    edge.process.kill("SIGKILL");
    await edge.process.exited;
    edge = await startEdge({ port, data: join(data, folder), bindings });
    generation += 1;
  };
  const operate = (...args: string[]) => {
    const env = { OPERATOR_TOKEN: operator.token, RESONATE_URL: "", RESONATE_TOKEN: "" };
    return execa(process.execPath, ["cli/main.ts", ...args, "--url", edge.url], { env, all: true });
  };
  const told = async (token: string, query = "", method = "GET") => {
    const headers = { ...bearer(token), "sec-fetch-site": "same-origin" };
    const response = await fetch(`${edge.url}/pages/subscribers${query}`, { method, headers });
    return (await response.json()) as { subscriptions: { id: string; status: { active: boolean } }[] };
  };
  let others: string | undefined;
  const controls: Record<string, Control> = {
    async allow_callback_origin({ origin = "" }) {
      bindings.ALLOW_LOOPBACK_CALLBACKS = "1";
      await restart();
      return origin;
    },
    async restart() {
      await restart();
      return String(generation);
    },
    generation: () => String(generation),
    quota: () => JSON.stringify({ name: "job.ended", max: 50 }),
    async subscription_state({ id = "" }) {
      const found = (await told(TOKENS.suite)).subscriptions.find((one) => one.id === id);
      return found ? (found.status.active ? "active" : "suspended") : "absent";
    },
    async subscribe_as({ name, url }) {
      await using other = await eventsAt(`${edge.url}/mcp`, TOKENS.other);
      const delivery = { mode: "webhook", url, secret: newSecret() };
      others = ((await other.request("events/subscribe", { name, arguments: {}, delivery })) as { id: string }).id;
      return others;
    },
    subscription_exists: async () => String((await told(TOKENS.other)).subscriptions.some(({ id }) => id === others)),
    async webhook_terminate({ id = "" }) {
      await told(TOKENS.suite, `?end=${id}`, "DELETE");
      return id;
    },
    ...(gate && {
      async yield_error({ name = "" }) {
        let until: number | undefined;
        gate.refuse("promise.get", () => {
          until ??= Date.now() + OUTAGE;
          return Date.now() < until ? 503 : undefined;
        });
        return name;
      },
    }),
    ...(!gate && {
      async yield_gap({ name = "" }) {
        await operate("forget", "suite", "--apply");
        return name;
      },
      async webhook_gap({ id = "" }) {
        const file = join(data, "backup.ndjson");
        await operate("backup", "--out", file);
        folder = "restored";
        isPaused = true;
        await restart();
        await operate("restore", "--from", file).finally(() => {
          isPaused = false;
        });
        return id;
      },
      async terminate({ name = "" }) {
        await operate("operate", "block", "suite");
        return name;
      },
    }),
  };

  const leave = new AbortController();
  const work = async () => {
    for (let n = 0; !leave.signal.aborted; n++) {
      const timer_name = `${generation} ${n}`;
      const job = async () => {
        await using suite = await eventsAt(`${edge.url}/mcp`, TOKENS.suite);
        await suite.start("set_timer", { timer_name, seconds: 3_600 });
        await suite.start("cancel_job", { job_names: [`timer_${timer_name}`] });
      };
      if (!isPaused) await job().catch(() => {}); // Calls fail while the edge is down.
      await delay(BETWEEN, undefined, { signal: leave.signal }).catch(() => {});
    }
  };
  const working = work();
  started.defer(async () => {
    leave.abort();
    await working;
  });

  const pass = async (request: IncomingMessage, response: ServerResponse) => {
    const body = await text(request);
    const { id, method, params } = body ? JSON.parse(body) : {};
    const answer = (result: object) =>
      response
        .writeHead(200, { "content-type": "application/json" })
        .end(JSON.stringify({ jsonrpc: "2.0", id, result: { resultType: "complete", ...result } }));
    const control = method === "tools/call" && controls[String(params.name).replace(/^events_conformance_/, "")];
    if (control) {
      const args = params.arguments ?? {};
      const words = await Promise.resolve(args)
        .then(control)
        .catch((error: Error) => error);
      return answer(
        words instanceof Error
          ? { isError: true, content: [{ type: "text", text: words.message }] }
          : { content: [{ type: "text", text: words }] },
      );
    }
    const gone = new AbortController();
    response.on("close", () => gone.abort());
    const { host: _, connection: _c, "content-length": _l, ...headers } = request.headers;
    const passed = await fetch(edge.url + request.url, {
      method: request.method ?? "POST",
      headers: { ...(headers as object), ...bearer(TOKENS.suite) },
      body,
      signal: gone.signal,
    });
    const type = passed.headers.get("content-type") ?? "application/json";
    if (method === "tools/list") {
      const { result } = (await passed.json()) as { result: { tools: object[] } };
      const inputSchema = { type: "object" };
      const more = Object.keys(controls).map((name) => ({ name: `events_conformance_${name}`, inputSchema }));
      return answer({ ...result, tools: [...result.tools, ...more] });
    }
    response.writeHead(passed.status, { "content-type": type }).flushHeaders();
    for await (const chunk of passed.body ?? []) response.write(chunk);
    response.end();
  };
  const server = started.use(
    await serveHttp((request, response) => void pass(request, response).catch(() => request.socket.destroy())),
  );
  const all = started.move();
  return {
    url: `${server.url}/mcp`,
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}
