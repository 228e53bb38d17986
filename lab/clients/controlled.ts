/**
 * `npm run conformance:events [-- --apart]`: a deployment for public conformance scenarios of events, until Ctrl-C. It prints
 * its MCP endpoint. Requests without a token belong to one caller, whose jobs end all the time. The endpoint lists the scenarios'
 * control tools (`events_conformance_…`) beside its own; each of them provokes its event through a real cause. Without `--apart`
 * the deployment runs as in an account, where operators forget, block and restore; with it, it has a separate Resonate server,
 * which can be out of reach.
 */
import { randomBytes } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { parseArgs } from "node:util";
import { newToken } from "../../cli/static-token.ts";
import { bearerBindings } from "../../test/auth/support.ts";
import { eventsAt } from "../../test/events/support.ts";
import { type Gate, startGate } from "../../test/support/gate.ts";
import { startResonate } from "../../test/support/resonate.ts";
import { serveControls } from "./control-proxy.ts";
import { ControlledEdge } from "./controlled-edge.ts";
import { edgeControls, operatorControls, outageControls, TOKENS } from "./controls.ts";

const { values } = parseArgs({ options: { apart: { type: "boolean", default: false } } });

/** The pause between two jobs that end, in milliseconds. */
const PAUSE_MS = 1_500;

await using deployment = await startControlled(values.apart);
console.log(deployment.url);
await new Promise((resolve) => process.once("SIGINT", resolve));

interface Controlled extends AsyncDisposable {
  readonly url: string;
}

/** `apart`: with a separate Resonate server, which can be out of reach; otherwise as in an account, which can be operated. */
async function startControlled(apart: boolean): Promise<Controlled> {
  await using parts = new AsyncDisposableStack();
  const data = await mkdtemp(join(tmpdir(), "controlled-"));
  parts.defer(() => rm(data, { recursive: true, force: true }));
  const operator = newToken();
  const gate = apart ? parts.use(await startGate(parts.use(await startResonate({ own: true })).url)) : undefined;
  const edge = parts.use(await ControlledEdge.start(data, bindingsOf(gate, operator.sha256)));
  parts.use(endJobs(edge));
  const controls = {
    ...edgeControls(edge),
    ...(gate ? outageControls(gate) : operatorControls(edge, data, operator.token)),
  };
  const server = parts.use(await serveControls(edge, controls));
  const all = parts.move();
  return {
    url: `${server.url}/mcp`,
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}

/** @param operatorHash the hash of the operator's token, for a deployment as in an account */
function bindingsOf(gate: Gate | undefined, operatorHash: string): Record<string, string> {
  return {
    ...bearerBindings(TOKENS),
    EVENT_ERRORS: "sketch",
    RATE_LIMIT: "0",
    MAX_JOBS: "0",
    TASK_KEY: randomBytes(32).toString("hex"),
    VIEW_KEY: "v".repeat(32),
    ALLOWED_HOSTS: "127.0.0.1,localhost",
    ...(gate
      ? { RESONATE_URL: gate.url }
      : { RESONATE_PUBLIC: "1", OPERATOR_TOKENS: JSON.stringify([{ name: "op", sha256: operatorHash }]) }),
  };
}

/** Starts and cancels the suite's jobs, one after another, until it is disposed of. */
function endJobs(edge: ControlledEdge): AsyncDisposable {
  const stop = new AbortController();
  const endJob = async (timer_name: string) => {
    await using suite = await eventsAt(`${edge.url}/mcp`, TOKENS.suite);
    await suite.start("set_timer", { timer_name, seconds: 3_600 });
    await suite.start("cancel_job", { job_names: [`timer_${timer_name}`] });
  };
  const loop = async () => {
    for (let n = 0; !stop.signal.aborted; n++) {
      if (!edge.isPaused) await endJob(`${edge.generation} ${n}`).catch(() => {}); // Calls fail while the edge is down.
      await delay(PAUSE_MS, undefined, { signal: stop.signal }).catch(() => {});
    }
  };
  const loopEnd = loop();
  return {
    async [Symbol.asyncDispose]() {
      stop.abort();
      await loopEnd;
    },
  };
}
