/** The embedded Resonate server in a SQLite-backed Durable Object: the same protocol over its `fetch`, time by its alarm. */
import { retentionOf } from "../../core/jobs/retention.ts";
import { type ObjectAddress, placed } from "../../core/store/object-address.ts";
import { type SweepPosition, sweep } from "../engine/retention.ts";
import { Store } from "../engine/store.ts";
import { Resonate } from "../resonate.ts";
import { type Refuse, respondTo } from "../wire/answer.ts";
import { readBody } from "./body.ts";
import { ContainerWorker } from "./container.ts";
import { ObjectSql } from "./object-sql.ts";
import { OPERATE, type Operated, Operator, type OperatorEnv } from "./operate.ts";
import type { ObjectState, ObjectStorage } from "./platform.ts";
import { isLetIn, isWithin, PUBLIC, type PublicEnv } from "./public.ts";
import { type RunnerNamespace, Runners } from "./runners.ts";
import { Serving } from "./serving.ts";
import { PollStreams } from "./stream.ts";
import { type Notes, openTables } from "./tables.ts";

/** How many pieces of what is due one alarm handles: it has a limit of CPU time, and requests are answered in between. */
const SLICES = 20;
/** How long, in milliseconds, to leave a storage alone that could not be written to. */
const FAILURE_PAUSE = 1_000;
/** How often, in milliseconds, all that has ended is looked through for what is kept no longer: more often where less is kept. */
const LONGEST_SWEEP_INTERVAL = 86_400_000;
const SHORTEST_SWEEP_INTERVAL = 200;

const WAITING = /^\/waiting\/([^/]+)$/;
const RESTS = "The server rests: its operator reads what it keeps, or has moved it";
const POLL = /^\/poll\/([^/]+)\/([^/]+)$/;

interface ObjectEnv extends PublicEnv, OperatorEnv, ObjectAddress {
  RUNNER?: RunnerNamespace;
  /** The worker's containers, where the deployment has any. */
  WORKER?: RunnerNamespace;
  RESONATE_GROUP?: string;
  /** Where the deployment's jobs run: `container`, or else in Workers, which the runner does. */
  RUNS_IN?: string;
  RETENTION_DAYS?: string;
}

/**
 * The Resonate server of an account: what `resonateObject` of `durable-mcp-edge/edge` loads. A project exports it from a module
 * of its own, which is built beside the edge's.
 *
 * @example
 * const ResonateObject = resonateObject(async () => ({ ObjectServer }));
 */
export class ObjectServer implements Operated {
  readonly #storage: ObjectStorage;
  readonly #sql: ObjectSql;
  readonly #store: Store;
  readonly #notes: Notes;
  readonly #resonate: Resonate;
  readonly #streams: PollStreams;
  readonly #runners: Runners | undefined;
  readonly #container: ContainerWorker | undefined;
  /** When the alarm is set to; undefined when it is not. */
  #alarm: number | undefined;
  /** The time of the alarm that came last: one that is set to the same while that one is handled, the platform forgets. */
  #fired = 0;
  #isInAlarm = false;
  /** In milliseconds; undefined: for ever. */
  readonly #keep: number | undefined;
  #sweepAt: number;
  #swept: SweepPosition | undefined;

  /** Until when it does nothing, in milliseconds since the epoch: an operator reads what it keeps, or has moved it. */
  #restsUntil: number;

  readonly #env: PublicEnv;
  readonly #operator: Operator;
  readonly #since = Date.now();
  #requests = 0;
  #alarms = 0;

  constructor(state: ObjectState, env: ObjectEnv = {}) {
    this.#env = env;
    const { storage } = state;
    this.#storage = storage;
    this.#keep = retentionOf(env.RETENTION_DAYS);
    this.#sql = new ObjectSql(storage);
    this.#notes = openTables(this.#sql);
    this.#operator = new Operator(state, this.#sql, this.#notes, this, env);
    this.#restsUntil = this.#notes.get("rests") === "forever" ? Number.POSITIVE_INFINITY : 0;
    // What was noted when more was kept may be too late now.
    const noted = Number(this.#notes.get("sweep") ?? 0);
    this.#sweepAt = this.#keep === undefined ? noted : Math.min(noted, Date.now() + sweepInterval(this.#keep));
    this.#store = new Store(this.#sql);
    this.#resonate = new Resonate(this.#store, {
      log: {
        error: (fields, message) => console.error(JSON.stringify({ level: "error", msg: message, ...told(fields) })),
      },
      soon: (work) => queueMicrotask(work),
      onCommit: () => this.#arm(),
      // A group of its own is for those who have what it needs.
      onUnheard: (group) => {
        if (group !== (env.RESONATE_GROUP || "workers")) return;
        this.#runners?.take(group);
        this.#container?.wake();
      },
    });
    this.#streams = new PollStreams(this.#resonate, new Serving(this.#notes), () => storage.sync());
    // Where a container runs the jobs, they wait for it to wake up.
    if (env.WORKER && env.RUNS_IN === "container") {
      this.#container = new ContainerWorker(env.WORKER, () => storage.sync());
    } else if (env.RUNNER && env.RUNS_IN !== "container") {
      this.#runners = new Runners(this.#resonate, placed(env.RUNNER, env), env.RESONATE_NAMESPACE ?? "", () =>
        storage.sync(),
      );
    }
    void state.blockConcurrencyWhile(async () => {
      this.#alarm = (await storage.getAlarm()) ?? undefined;
      // The platform drops an alarm that has failed six times: whatever wakes the object sets it again.
      this.#arm();
    });
  }

  async fetch(request: Request): Promise<Response> {
    this.#requests += 1;
    const { method } = request;
    const { pathname } = new URL(request.url);
    if (pathname.startsWith(PUBLIC)) return this.#answerPublic(request, pathname.slice(PUBLIC.length));
    if (method === "POST" && pathname === "/") return this.#answer(request);
    if (method !== "GET" && method !== "HEAD") return new Response("404 Not Found", { status: 404 });
    const [, group, id] = POLL.exec(pathname) ?? [];
    if (group !== undefined && id !== undefined) return this.#push(request, decode(group), decode(id));
    if (pathname === "/health" || pathname === "/ready") return new Response();
    if (pathname === "/key") return new Response(this.#key());
    const [, waiting] = WAITING.exec(pathname) ?? [];
    if (waiting !== undefined) return Response.json({ isWaiting: this.#resonate.isWaiting(decode(waiting)) });
    if (pathname === "/usage") return Response.json(this.usage());
    return new Response("404 Not Found", { status: 404 });
  }

  /** What workers elsewhere ask, and nothing else: the key of task ids is none of it. */
  async #answerPublic(request: Request, pathname: string): Promise<Response> {
    if (request.method === "POST" && (pathname === "" || pathname === "/")) {
      return this.#answer(request, (auth, asked) => {
        if (isLetIn(auth, this.#env.OPERATOR_TOKENS)) return undefined;
        if (!isLetIn(auth, this.#env.RESONATE_TOKENS)) return 401;
        return !asked || isWithin(asked, this.#env) ? undefined : 403;
      });
    }
    if (request.method === "GET" && pathname === "/ready") return new Response();
    const [, token] = /^Bearer +(\S+)$/i.exec(request.headers.get("authorization") ?? "") ?? [];
    if (pathname.startsWith(OPERATE)) {
      if (!isLetIn(token, this.#env.OPERATOR_TOKENS)) return new Response("Unauthorized", { status: 401 });
      return this.#operator.fetch(request, pathname.slice(OPERATE.length));
    }
    const [, group, id] = POLL.exec(pathname) ?? [];
    if (request.method !== "GET" || group === undefined || id === undefined) return new Response(null, { status: 404 });
    if (!isLetIn(token, this.#env.RESONATE_TOKENS)) return new Response("Unauthorized", { status: 401 });
    // To this group the edge listens, for all its callers.
    if (decode(group) === "edge") return new Response("Forbidden", { status: 403 });
    return this.#push(request, decode(group), decode(id));
  }

  /** What it has done since it woke, in rows as the platform counts them and in milliseconds; its size in bytes. */
  usage() {
    const { read, written } = this.#sql.rows;
    return {
      ...{ requests: this.#requests, alarms: this.#alarms, rows: { read, written } },
      ...{ awake: Date.now() - this.#since, size: this.#storage.sql.databaseSize },
    };
  }

  get restsUntil(): number {
    return this.#restsUntil;
  }

  rest(until: number): void {
    this.#restsUntil = until;
    this.#streams.endAll();
    this.#runners?.leaveAll();
    this.#arm();
  }

  wake(): void {
    this.#restsUntil = 0;
    this.#arm();
  }

  /** Handles what is due. Never rejects, and sets the next alarm in every case. */
  async alarm(): Promise<void> {
    this.#fired = Math.max(this.#alarm ?? 0, Date.now());
    this.#alarm = undefined;
    this.#alarms += 1;
    if (Date.now() < this.#restsUntil) return this.#arm();
    this.#isInAlarm = true;
    let isWritable = true;
    try {
      for (let slice = 0; slice < SLICES; slice++) {
        const found = this.#resonate.tick();
        isWritable = found !== undefined;
        if (!found) break;
        await new Promise((resolve) => setTimeout(resolve));
      }
      if (isWritable) this.#sweep(Date.now());
    } catch (error) {
      isWritable = false;
      console.error(JSON.stringify({ level: "error", msg: "alarm failed", ...told({ err: error }) }));
    } finally {
      this.#isInAlarm = false;
      this.#arm(isWritable ? 0 : Date.now() + FAILURE_PAUSE);
    }
  }

  /** Sets the alarm to when something is due next, and not before `earliest`. Each time it is set is a row written. */
  #arm(earliest = 0): void {
    if (this.#isInAlarm) return;
    const due = Math.min(this.#resonate.due ?? Number.POSITIVE_INFINITY, this.#nextSweep());
    if (due === Number.POSITIVE_INFINITY) return;
    const time = Math.max(due, earliest, this.#restsUntil, this.#fired + 1);
    if (time === Number.POSITIVE_INFINITY) return;
    // One that is early finds nothing due, and sets the next.
    if (this.#alarm !== undefined && this.#alarm <= time) return;
    this.#alarm = time;
    this.#sql.rows.written += 1;
    void this.#storage.setAlarm(time);
  }

  /** An object without a job needs no alarm. */
  #nextSweep(): number {
    if (this.#keep === undefined) return Number.POSITIVE_INFINITY;
    if (this.#sweepAt > 0) return this.#sweepAt;
    if (this.#store.ids("promises", "LIMIT 1").length === 0) return Number.POSITIVE_INFINITY;
    return Date.now() + sweepInterval(this.#keep);
  }

  /** A piece of looking for jobs that ended long ago, when it is time for it. */
  #sweep(now: number): void {
    const keep = this.#keep;
    if (keep === undefined || now < this.#sweepAt) return;
    this.#store.transaction(() => {
      this.#swept = this.#sweepAt === 0 ? undefined : sweep(this.#store, now, keep, this.#swept);
      if (this.#swept) return;
      this.#sweepAt = now + sweepInterval(keep);
      this.#notes.set("sweep", String(this.#sweepAt));
    });
  }

  /** What seals the task ids of the deployment: made when it is first asked for, kept from then on. */
  #key(): string {
    const known = this.#notes.get("key");
    if (known !== undefined) return known;
    const made = btoa(String.fromCharCode(...crypto.getRandomValues(new Uint8Array(48))));
    this.#notes.set("key", made);
    return made;
  }

  async #answer(request: Request, refuse: Refuse = () => undefined): Promise<Response> {
    const body = await readBody(request);
    if (body instanceof Response) return body;
    if (Date.now() < this.#restsUntil) return new Response(RESTS, { status: 503 });
    const asked = request.headers.get("content-type");
    const { status, text, type } = await respondTo(this.#resonate, body, asked, refuse);
    return new Response(text, { status, headers: { "content-type": type } });
  }

  #push(request: Request, group: string, id: string): Response {
    const headers = { "content-type": "text/event-stream", "cache-control": "no-cache" };
    if (request.method === "HEAD") return new Response(null, { headers });
    if (Date.now() < this.#restsUntil) return new Response(RESTS, { status: 503 });
    const connection = this.#resonate.connect(group, id);
    if (!connection) return new Response("Poll registration at capacity", { status: 503 });
    this.#runners?.leave(group);
    // A reader that leaves shows by either.
    request.signal.addEventListener("abort", () => this.#resonate.disconnect(connection));
    return new Response(this.#streams.read(connection), { headers });
  }
}

function sweepInterval(keep: number): number {
  return Math.min(Math.max(keep / 10, SHORTEST_SWEEP_INTERVAL), LONGEST_SWEEP_INTERVAL);
}

/** What cannot be decoded stands for itself. */
function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** Fields for a line of the log, an error as its stack. */
function told(fields: object): object {
  return Object.fromEntries(
    Object.entries(fields).map(([name, value]) => [
      name,
      value instanceof Error ? (value.stack ?? String(value)) : value,
    ]),
  );
}
