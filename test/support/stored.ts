/** The jobs of a stack as the Resonate server stores them, read without the edge. */
import { Codec, type PromiseRecord } from "@resonatehq/sdk";
import type { Stack } from "./stack.ts";

/** A job's decoded promise, with its job name. */
export interface Stored {
  name: string;
  func: string;
  // oxlint-disable-next-line typescript/no-explicit-any -- arguments of any job
  args: any;
  state: PromiseRecord["state"];
  value: unknown;
  /** Milliseconds since the epoch. */
  createdAt: number;
  settledAt: number | undefined;
}

const codec = new Codec();
const PAGE = 500;

/** All jobs of the stack by name, or only those in `state`. */
export async function storedJobs(
  { resonate, namespace, group }: Stack,
  state?: PromiseRecord["state"],
): Promise<Map<string, Stored>> {
  const jobs = new Map<string, Stored>();
  for (let cursor: string | undefined; ;) {
    const { head, data } = await resonate.call("promise.search", {
      tags: { "resonate:target": `poll://any@${group}` },
      limit: PAGE,
      ...(state && { state }),
      ...(cursor !== undefined && { cursor }),
    });
    if (head.status !== 200 || typeof data !== "object")
      throw new Error(`promise.search answered ${head.status}: ${data}`);
    for (const record of data.promises) {
      const { id, param, value, createdAt, settledAt } = codec.decodePromise(record);
      const name = id.slice(namespace.length);
      const { func, args } = param.data;
      jobs.set(name, { name, func, args: args[0], state: record.state, value: value.data, createdAt, settledAt });
    }
    if (data.cursor === undefined) return jobs;
    cursor = data.cursor;
  }
}
