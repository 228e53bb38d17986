/** Wakes the containers when jobs wait, and tells when they may sleep. */
import { fetchFrom, type ObjectAddress, type ResonateNamespace, withLocation } from "../../core/resonate/index.ts";

export interface WakeEnv extends ObjectAddress {
  WORKER: { getByName(name: string): { fetch(url: string): Promise<Response> } };
  /** The account's own Resonate server, an object of the edge's Worker. */
  RESONATE: ResonateNamespace;
  /** How many workers start. */
  INSTANCES: string;
  RESONATE_URL?: string;
  RESONATE_GROUP?: string;
}

/** Visits the workers when jobs wait for them, which starts containers that do not run. */
export async function wake(env: WakeEnv): Promise<void> {
  // A server elsewhere cannot tell whether jobs wait, so its workers always stay awake.
  if (!env.RESONATE_URL && !(await areJobsWaiting(env))) return;
  await Promise.all(Array.from({ length: Number(env.INSTANCES) }, (_, i) => visit(env.WORKER, `worker-${i + 1}`)));
}

/** Whether a job waits and no worker is connected, or a job has just woken the first worker. */
async function areJobsWaiting({ RESONATE, RESONATE_GROUP, ...where }: WakeEnv): Promise<boolean> {
  const group = encodeURIComponent(RESONATE_GROUP || "workers");
  const response = await fetchFrom(withLocation(RESONATE, where))(`http://resonate/waiting/${group}`);
  return ((await response.json()) as { isWaiting: boolean }).isWaiting;
}

async function visit(workers: WakeEnv["WORKER"], worker: string): Promise<void> {
  try {
    const response = await workers.getByName(worker).fetch("http://worker/health");
    const told = { level: "info", msg: "worker", worker, http: response.status };
    console.log(JSON.stringify({ ...told, ...((await response.json()) as object) }));
  } catch (error) {
    console.error(JSON.stringify({ level: "error", msg: "worker does not answer", worker, error: String(error) }));
  }
}

/** Whether a worker executes no job, by the answer of its health endpoint. True for a worker that does not answer. */
export async function isIdle(health: Promise<Response>): Promise<boolean> {
  try {
    return ((await (await health).json()) as { running?: number }).running === 0;
  } catch {
    return true;
  }
}
