/** Lets the worker of `wrap` accept calls directly from the edge, which may end before they become jobs. */
import type { Log } from "../../core/index.ts";
import { ResonateClient } from "../../core/resonate/index.ts";
import { Pauses } from "../../features/pauses/pauses.ts";
import { readConfig } from "../../worker/config.ts";
import type { WrapDefinition } from "../../wrap/index.ts";
import { serveCalls } from "../../wrap/worker/calls-at-once.ts";
import type { WrappedServer } from "../../wrap/worker/wrapped-server.ts";

/** Serves such calls at the address `WRAP_CALLS`, if the environment has one. */
export function serveCallsOf({ jobs }: WrapDefinition, server: WrappedServer, env: NodeJS.ProcessEnv, log: Log): void {
  const { WRAP_CALLS: url, WRAP_CALLS_TOKEN: token } = env;
  if (!url || !token) return;
  const config = readConfig(env);
  const client = new ResonateClient({ url: config.RESONATE_URL, token: config.RESONATE_TOKEN });
  const pauses = new Pauses(client, config.RESONATE_NAMESPACE, config.LEASE_SECONDS * 1_000);
  const mayRun = async (job: string) => (await pauses.find(job, jobs.own.kind)) === undefined;
  serveCalls({ url, token }, { server, log, mayRun });
}
