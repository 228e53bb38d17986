import { randomUUID } from "node:crypto";
import type { Job } from "../../core/author/job.ts";
import type { RemoteStore } from "../../core/jobs/remote-store.ts";
import type { SettlementSource } from "../../core/jobs/settlements.ts";
import { ResonateClient } from "../../core/resonate/connection/client.ts";
import { ownGroup } from "../../testing/stack/worker-process.ts";
import { type Gate, startGate } from "../support/gate.ts";
import { jobStore } from "../support/job-store.ts";
import { JOBS } from "../support/jobs.ts";
import { type Resonate, startResonate } from "../support/resonate.ts";

/** The edge's store over a Resonate server, with a gate in between that counts and interferes. */
export interface Scene extends AsyncDisposable {
  store: RemoteStore;
  gate: Gate;
  resonate: Resonate;
  namespace: string;
  /** A store over the server at another address. */
  storeAt(url: string, jobs?: readonly Job[]): RemoteStore;
}

/** A source of settlements that opens a connection for each wait. */
export const directly = (client: ResonateClient): SettlementSource => ({
  async open({ onNews, signal }) {
    const channel = await client.connections.open({
      group: "edge",
      id: randomUUID(),
      signal,
      onMessage: (message) => {
        if (message.kind === "unblock") onNews({ id: message.promise.id, promise: message.promise });
      },
    });
    return { ...channel, add: async () => {} };
  },
});

export async function startScene(): Promise<Scene> {
  const resonate = await startResonate();
  const gate = await startGate(resonate.url);
  const { group, namespace } = ownGroup();
  const storeAt = (url: string, jobs = JOBS) => {
    const token = process.env.RESONATE_TOKEN;
    return jobStore({ url, token, group, namespace, settlements: directly(new ResonateClient({ url, token })) }, jobs);
  };
  return {
    store: storeAt(gate.url),
    gate,
    resonate,
    namespace,
    storeAt,
    async [Symbol.asyncDispose]() {
      await gate[Symbol.asyncDispose]();
      await resonate[Symbol.asyncDispose]();
    },
  };
}
