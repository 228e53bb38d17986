import { randomUUID } from "node:crypto";
import { Codec, HttpNetwork, type PromiseRecord, type Request, type Response, type TaskRecord } from "@resonatehq/sdk";
import { freePort } from "../../testing/stack/port.ts";
import { type Program, run, until, waitForAnswer } from "../../testing/stack/program.ts";
import { programOf } from "./programs.ts";

/** A Resonate server, and the calls that a test makes to it. */
export interface Resonate extends AsyncDisposable {
  readonly url: string;
  /** The environment that makes a part of the product use this server. */
  readonly env: Record<string, string>;
  /** The server's own process; undefined if the server is shared. */
  readonly program: Program | undefined;
  call<K extends Request["kind"]>(kind: K, data: RequestData<K>): Promise<Extract<Response, { kind: K }>>;
  /** Creates a job's promise as the edge does. */
  start(job: StartedJob): Promise<PromiseRecord>;
  /** The promise with param and value decoded; undefined when there is none. */
  get(id: string): Promise<PromiseRecord | undefined>;
  /** Waits until the promise is settled and returns it decoded. */
  settled(id: string, ms?: number): Promise<PromiseRecord>;
  /** The job's task; undefined when there is none. */
  task(id: string): Promise<TaskRecord | undefined>;
  /** Waits until every job sleeps, or awaits others: until its task is suspended. */
  asleep(ids: string | readonly string[], ms?: number): Promise<void>;
}

interface StartedJob {
  id: string;
  func: string;
  args: unknown;
  group?: string;
  timeoutAt?: number;
  tags?: object;
}

type RequestData<K extends Request["kind"]> = Extract<Request, { kind: K }>["data"];

const codec = new Codec();

/** The embedded server's program: in a Node process, or, with `RESONATE_HOST=object`, in a Durable Object in workerd. */
export const EMBEDDED =
  process.env.RESONATE_HOST === "object" ? "test/support/object/object-process.ts" : programOf("resonate");

interface StartOptions {
  own?: boolean;
  /** For a test that starts a server again at the same port, with `args` for the same state. */
  port?: number;
  args?: string[];
  /** The token that the server demands. */
  token?: string;
}

/** The embedded server that test files of this process share, under different ids, unless they start their own. */
let shared: Promise<Resonate> | undefined;

/**
 * Returns the server at `RESONATE_URL`, or otherwise the shared one. With `own`, and in programs that are not tests, starts an
 * embedded server that ends when it is disposed of.
 */
export async function startResonate({ own = false, ...options }: StartOptions = {}): Promise<Resonate> {
  if (own) return startEmbedded(options);
  const given = process.env.RESONATE_URL;
  if (given) return resonateAt(given, undefined, process.env.RESONATE_TOKEN);
  if (!process.env.VITEST) return startEmbedded(options);
  // The shared server ends with this process.
  shared ??= startEmbedded(options).then(({ url }) => resonateAt(url, undefined, undefined));
  return shared;
}

async function startEmbedded({ port, args = ["--memory"], token }: Omit<StartOptions, "own">): Promise<Resonate> {
  const chosen = port ?? (await freePort());
  const env = { RESONATE_LOCAL_TOKEN: token ?? "" };
  const program = run(EMBEDDED, { args: ["--port", String(chosen), ...args], env });
  const url = `http://127.0.0.1:${chosen}`;
  await waitForAnswer(`${url}/ready`, program);
  return resonateAt(url, program, token);
}

/** The data of the request that creates a job's promise. */
export const creationOf = ({
  id,
  func,
  args,
  group = "workers",
  timeoutAt = Date.now() + 60_000,
  tags = {},
}: StartedJob) => ({
  id,
  timeoutAt,
  param: codec.encode({ func, args: [args], version: 1 }),
  tags: {
    "resonate:origin": id,
    "resonate:branch": id,
    "resonate:parent": id,
    "resonate:scope": "global",
    "resonate:target": `poll://any@${group}`,
    ...tags,
  },
});

/** The calls to the server at `url`. */
export function resonateAt(url: string, program: Program | undefined, token: string | undefined): Resonate {
  const network = new HttpNetwork({ url, timeout: 10_000, ...(token && { token }) });
  const call: Resonate["call"] = (kind, data) =>
    network.send({ kind, head: { corrId: randomUUID(), version: "2026-04-01" }, data } as never);
  const get: Resonate["get"] = async (id) => {
    const res = await call("promise.get", { id });
    return res.head.status === 200 ? codec.decodePromise((res.data as { promise: PromiseRecord }).promise) : undefined;
  };
  const task: Resonate["task"] = async (id) => {
    const { data } = await call("task.get", { id });
    return typeof data === "object" ? data.task : undefined;
  };
  return {
    url,
    env: { RESONATE_URL: url, RESONATE_TOKEN: token ?? "" },
    program,
    call,
    get,
    async start(job) {
      const res = await call("promise.create", creationOf(job));
      if (res.head.status !== 200) throw new Error(`promise.create answered ${res.head.status}: ${res.data}`);
      return (res.data as { promise: PromiseRecord }).promise;
    },
    settled: (id, ms) =>
      until(
        `${id} to settle`,
        async () => {
          const promise = await get(id);
          return promise && promise.state !== "pending" ? promise : undefined;
        },
        ms,
      ),
    task,
    async asleep(ids, ms) {
      const all = [ids].flat();
      const areAsleep = async () => (await Promise.all(all.map(task))).every((each) => each?.state === "suspended");
      await until(`${all.join(", ")} to sleep`, areAsleep, ms);
    },
    async [Symbol.asyncDispose]() {
      await program?.[Symbol.asyncDispose]();
    },
  };
}
