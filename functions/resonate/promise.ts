/** How promises are written and read: their tags, and the values in them. */
import { Codec, type PromiseRecord } from "@resonatehq/sdk";
import type { AnyJob } from "../jobs/job.ts";

/** A job's promise: values decoded, the namespace and its caller's key taken off its id. */
export interface DurablePromise {
  /** The job name, with its generation. */
  name: string;
  job: AnyJob;
  /** The canonical arguments. */
  args: unknown;
  state: PromiseRecord["state"];
  /** What it was resolved with, or the reason it was rejected with. */
  value: unknown;
  /** Milliseconds since the epoch. */
  createdAt: number;
  settledAt: number | undefined;
  timeoutAt: number;
  /** Who created the promise of a shared job: a caller's key, or a durable function. */
  starter: string | undefined;
  /** The request that created it. */
  request: string | undefined;
}

/** The tag that holds a promise's {@link DurablePromise.starter}. */
export const STARTER = "durable-mcp:starter";

const codec = new Codec();

export const encodeValue = (value: unknown): PromiseRecord["value"] => codec.encode(value);

/** A value nobody here wrote may be undecodable; it is then no value of ours. */
export function decodeValue(value: PromiseRecord["value"]): unknown {
  try {
    return codec.decode(value);
  } catch {
    return undefined;
  }
}

/** The tags that make a promise `id` part of what `origin` started, and one that can be listened to. */
export function lineage(origin: string, id: string): Record<string, string> {
  return {
    "resonate:origin": origin,
    "resonate:branch": id,
    "resonate:parent": origin,
    "resonate:scope": "global",
  };
}

/** The call that makes a promise `id` part of what `origin` started; one that is there stays as it is. */
export function childOf(
  origin: string,
  id: string,
  timeoutAt: number,
  { param, tags }: { param?: unknown; tags?: Record<string, string> } = {},
) {
  const data = { id, timeoutAt, param: encodeValue(param), tags: { ...lineage(origin, id), ...tags } };
  return { kind: "promise.create" as const, data };
}
