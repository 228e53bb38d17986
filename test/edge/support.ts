import { type AnyJob, JOBS } from "../../functions/jobs/index.ts";
import { RemoteStore } from "../../functions/resonate/store.ts";
import { type Gate, startGate } from "../support/gate.ts";
import { type Resonate, startResonate } from "../support/resonate.ts";
import { ownGroup } from "../support/worker.ts";

/** The edge's store over a Resonate server, with a gate in between that counts and interferes. */
export interface Scene extends AsyncDisposable {
  store: RemoteStore;
  gate: Gate;
  resonate: Resonate;
  namespace: string;
  /** A store over the server at another address. */
  storeAt(url: string, jobs?: readonly AnyJob[]): RemoteStore;
}

export async function startScene(): Promise<Scene> {
  const resonate = await startResonate();
  const gate = await startGate(resonate.url);
  const { group, namespace } = ownGroup();
  const storeAt = (url: string, jobs = JOBS) =>
    new RemoteStore(
      {
        RESONATE_URL: url,
        RESONATE_TOKEN: process.env.RESONATE_TOKEN,
        RESONATE_GROUP: group,
        RESONATE_NAMESPACE: namespace,
      },
      jobs,
    );
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
