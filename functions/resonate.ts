/** The one module that talks to the Resonate server: promises are created, read, listened to and settled here. */
import { Codec, type PromiseRecord, type Request, type Response as ResonateResponse } from "@resonatehq/sdk";
import { createParser } from "eventsource-parser";
import type { Config } from "./config.ts";
import { type Job, type JobKind, splitGeneration } from "./jobs/job.ts";

/** The version of Resonate's protocol spoken here. */
const PROTOCOL = "2026-04-01";

/** How long one call to the Resonate server may take, in milliseconds. */
const CALL_TIMEOUT = 10_000;

/** The server could not be reached or could not answer. The same call is safe to repeat: every operation here is idempotent. */
export class ResonateUnavailable extends Error {
  override name = "ResonateUnavailable";
}

/** The name of a job is held by a promise that is none of this deployment's. */
export class NameTaken extends Error {
  override name = "NameTaken";
}

/** A promise as the edge sees it: values decoded, the namespace taken off its id. */
export interface DurablePromise {
  /** The job name, with its generation. */
  name: string;
  state: PromiseRecord["state"];
  /** The durable function it calls, and the canonical arguments. */
  func: string;
  args: unknown;
  /** What it was resolved with, or the reason it was rejected with. */
  value: unknown;
  /** Milliseconds since the epoch. */
  createdAt: number;
  settledAt: number | undefined;
}

/** An open SSE connection, over which the server pushes the promises listened to at `address` as they settle. */
export interface Channel {
  address: string;
  /** Resolves when the connection ends, for whatever reason. */
  closed: Promise<void>;
}

const codec = new Codec();

/**
 * The promises of a deployment's jobs. Whatever else lives on the Resonate server is not there: an id that no job
 * could have made, or a promise that calls another function than its job's, is neither read nor listened to.
 */
export class RemoteStore {
  readonly #config: Config;
  readonly #jobs: readonly JobKind[];
  readonly #url: string;

  constructor(config: Config, jobs: readonly JobKind[]) {
    this.#config = config;
    this.#jobs = jobs;
    this.#url = config.RESONATE_URL.replace(/\/+$/, "");
  }

  /**
   * Creates the promise `name` with the worker group as its target, or returns the one already there.
   *
   * @throws {ResonateUnavailable}
   * @throws {NameTaken}
   */
  async create<Args>(job: Job<Args>, name: string, args: Args, now: number): Promise<DurablePromise> {
    const id = this.#id(name);
    const record = await this.#call({
      kind: "promise.create",
      data: {
        id,
        timeoutAt: job.deadline(args, now),
        param: codec.encode({ func: job.func, args: [args], version: 1 }),
        tags: {
          "resonate:origin": id,
          "resonate:branch": id,
          "resonate:parent": id,
          "resonate:scope": "global",
          "resonate:target": `poll://any@${this.#config.RESONATE_GROUP}`,
        },
      },
    });
    const promise = record && this.#decode(record);
    if (!promise) throw new NameTaken(name);
    return promise;
  }

  /** The promise `name`, or undefined. @throws {ResonateUnavailable} */
  async get(name: string, signal?: AbortSignal): Promise<DurablePromise | undefined> {
    if (!this.#jobOf(name)) return undefined;
    const record = await this.#call({ kind: "promise.get", data: { id: this.#id(name) } }, signal);
    return record && this.#decode(record);
  }

  /**
   * Asks for the settlement of `name` to be pushed to `channel`, and returns the promise as it is: a settled one is
   * not pushed. Undefined when there is none, or none that can be listened to.
   *
   * @throws {ResonateUnavailable}
   */
  async listen(name: string, channel: Channel, signal?: AbortSignal): Promise<DurablePromise | undefined> {
    if (!this.#jobOf(name)) return undefined;
    const record = await this.#call(
      { kind: "promise.register_listener", data: { awaited: this.#id(name), address: channel.address } },
      signal,
    );
    return record && this.#decode(record);
  }

  /**
   * Opens the SSE connection that settlements are pushed over. It must be open before a listener is registered: the
   * server drops a message to an address nobody is connected to.
   *
   * @throws {ResonateUnavailable} when it is refused (a server serves a bounded number of connections) or cannot be made
   */
  async open(onSettled: (promise: DurablePromise) => void, signal: AbortSignal): Promise<Channel> {
    const id = crypto.randomUUID();
    const headers: Record<string, string> = { accept: "text/event-stream" };
    if (this.#config.RESONATE_TOKEN) headers.authorization = `Bearer ${this.#config.RESONATE_TOKEN}`;
    const response = await this.#fetch(`${this.#url}/poll/edge/${id}`, { headers, signal });
    if (!response.ok || !response.body) throw refusal(response.status);
    const parser = createParser({
      onEvent: ({ data }) => {
        const message = JSON.parse(data) as { kind?: string; data?: { promise?: PromiseRecord } };
        const promise = message.kind === "unblock" && message.data?.promise && this.#decode(message.data.promise);
        if (promise) onSettled(promise);
      },
    });
    return { address: `poll://uni@edge/${id}`, closed: pump(response.body, (text) => parser.feed(text)) };
  }

  /** Whether the server says that it is ready. @throws {ResonateUnavailable} */
  async ready(): Promise<void> {
    const response = await this.#fetch(`${this.#url}/ready`, { signal: AbortSignal.timeout(3_000) });
    await response.body?.cancel();
    if (!response.ok) throw refusal(response.status);
  }

  #id(name: string): string {
    return this.#config.RESONATE_NAMESPACE + name;
  }

  #jobOf(name: string): JobKind | undefined {
    const { base } = splitGeneration(name);
    return this.#jobs.find((job) => job.owns(base));
  }

  /** The promise a record stands for, or undefined when it is foreign. */
  #decode(record: PromiseRecord): DurablePromise | undefined {
    const name = record.id.slice(this.#config.RESONATE_NAMESPACE.length);
    const param = decodeValue(record.param) as { func?: unknown; args?: unknown[] } | undefined;
    const func = this.#jobOf(name)?.func;
    if (func === undefined || param?.func !== func) return undefined;
    return {
      name,
      state: record.state,
      func,
      args: param.args?.[0],
      value: decodeValue(record.value),
      createdAt: record.createdAt,
      settledAt: record.settledAt,
    };
  }

  /** The record a call answers with; 404 and 422 (nothing there that can be listened to) are undefined. */
  async #call(request: Call, signal?: AbortSignal): Promise<PromiseRecord | undefined> {
    const { status, data } = await this.#send(request, signal);
    if (status === 404 || status === 422) return undefined;
    if (status !== 200) throw refusal(status, data);
    return (data as { promise: PromiseRecord }).promise;
  }

  async #send(request: Call, signal?: AbortSignal): Promise<{ status: number; data: unknown }> {
    const head: Request["head"] = { corrId: crypto.randomUUID(), version: PROTOCOL };
    if (this.#config.RESONATE_TOKEN) head.auth = this.#config.RESONATE_TOKEN;
    const timeout = AbortSignal.timeout(CALL_TIMEOUT);
    const response = await this.#fetch(this.#url, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ kind: request.kind, head, data: request.data }),
      signal: signal ? AbortSignal.any([signal, timeout]) : timeout,
    });
    try {
      const envelope = (await response.json()) as ResonateResponse;
      return { status: envelope.head.status, data: envelope.data };
    } catch {
      throw refusal(response.status);
    }
  }

  async #fetch(url: string, init: RequestInit): Promise<Response> {
    try {
      return await fetch(url, init);
    } catch (error) {
      throw new ResonateUnavailable("it could not be reached", { cause: error });
    }
  }
}

type Call = CallOf<"promise.create"> | CallOf<"promise.get"> | CallOf<"promise.register_listener">;
type CallOf<K extends Request["kind"]> = Pick<Extract<Request, { kind: K }>, "kind" | "data">;

function refusal(status: number, data?: unknown): ResonateUnavailable {
  if (status === 401 || status === 403) return new ResonateUnavailable("it refused this deployment's token");
  if (status === 429 || status === 503) return new ResonateUnavailable("it is at capacity");
  const reason = typeof data === "string" && data !== "" ? `: ${data}` : "";
  return new ResonateUnavailable(`it answered ${status}${reason}`);
}

/** A value nobody here wrote may be undecodable; it is then no value of ours. */
function decodeValue(value: PromiseRecord["value"]): unknown {
  try {
    return codec.decode(value);
  } catch {
    return undefined;
  }
}

/** Feeds a body to `sink` until it ends, fails or is aborted. */
async function pump(body: ReadableStream<Uint8Array>, sink: (text: string) => void): Promise<void> {
  const decoder = new TextDecoder();
  const reader = body.getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      sink(decoder.decode(value, { stream: true }));
    }
  } catch {
    // A lost connection ends the channel; whoever waits on it reads the promises instead.
  }
}
