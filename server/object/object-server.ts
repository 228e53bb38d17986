/** The embedded Resonate server in a SQLite-backed Durable Object: `fetch` serves the protocol, the alarm handles time-outs. */

import { retentionOf } from "../../core/jobs/retention.ts";
import { ResonateClient } from "../../core/resonate/connection/client.ts";
import { endpointOf } from "../../core/resonate/connection/endpoint.ts";
import { located, type ObjectAddress } from "../../core/resonate/object-address.ts";
import { readBytes } from "../../core/resonate/read-bytes.ts";
import type { FileBindings } from "../../features/files/location-in-workers.ts";
import { hasOperators, type OperatorEnv } from "../../features/operators/worker-report.ts";
import { Store } from "../engine/store.ts";
import { Resonate } from "../resonate.ts";
import { MAX_BODY, type Refuse, respondTo, TOO_LARGE } from "../wire/answer.ts";
import { decodePart } from "../wire/poll-address.ts";
import { isAllowed, isWithinNamespace, PUBLIC, type PublicEnv } from "./access.ts";
import { Alarm } from "./alarm.ts";
import { type CallerObjects, CallerReports } from "./caller-reports.ts";
import { ContainerWorker } from "./execution/container.ts";
import { type RunnerNamespace, RunnerPool, SLOTS } from "./execution/runner-pool.ts";
import { type OperateObjects, RunnerReports } from "./execution/runner-reports.ts";
import { FileSweep } from "./file-sweep.ts";
import { logError } from "./log.ts";
import { type BackupEnv, OPERATE, type Operated, Operator } from "./operate.ts";
import type { ObjectState } from "./platform.ts";
import { PollStreams } from "./poll-streams.ts";
import { Serving } from "./serving.ts";
import { StoreSql } from "./store-sql.ts";
import { type Notes, openTables } from "./tables.ts";

const WAITING = /^\/waiting\/([^/]+)$/;
const POLL = /^\/poll\/([^/]+)\/([^/]+)$/;
const PAUSED = "The server is paused: an operator reads its state, or has moved it";

interface ObjectEnv extends PublicEnv, BackupEnv, OperatorEnv, ObjectAddress, FileBindings {
  RUNNER?: RunnerNamespace;
  /** The worker's containers, if the deployment has any. */
  WORKER?: RunnerNamespace;
  /** The callers' objects, if the deployment has any. */
  CALLER?: CallerObjects & OperateObjects;
  RESONATE_GROUP?: string;
  /** Where the deployment's jobs run: `container`, or anything else for runners. */
  RUNS_IN?: string;
  RETENTION_DAYS?: string;
}

/**
 * The Resonate server of an account, which `resonateObject` of `durable-mcp-edge/edge` loads.
 *
 * @example
 * const ResonateObject = resonateObject(async () => ({ ObjectServer }));
 */
export class ObjectServer implements Operated {
  readonly #env: PublicEnv;
  /** The group whose tasks the account executes itself. */
  readonly #group: string;
  readonly #databaseSize: () => number;
  readonly #sql: StoreSql;
  readonly #notes: Notes;
  readonly #resonate: Resonate;
  readonly #alarm: Alarm;
  readonly #streams: PollStreams;
  readonly #operator: Operator;
  readonly #runners: RunnerPool | undefined;
  readonly #container: ContainerWorker | undefined;
  readonly #reports: CallerReports | undefined;
  #pausedUntil: number;
  readonly #startedAt = Date.now();
  #requests = 0;
  #alarms = 0;

  constructor(state: ObjectState, env: ObjectEnv = {}) {
    this.#env = env;
    this.#group = env.RESONATE_GROUP || "workers";
    const { storage } = state;
    const durable = () => storage.sync();
    this.#databaseSize = () => storage.sql.databaseSize;
    this.#sql = new StoreSql(storage);
    this.#notes = openTables(this.#sql);
    this.#operator = new Operator(state, this.#sql, this.#notes, this, env);
    this.#pausedUntil = this.#notes.get("rests") === "forever" ? Number.POSITIVE_INFINITY : 0;
    const store = new Store(this.#sql);
    this.#resonate = new Resonate(store, {
      log: { error: (fields, message) => logError(message, fields) },
      soon: (work) => queueMicrotask(work),
      onCommit: (changes) => {
        this.#alarm.set();
        this.#reports?.committed(changes);
      },
      onWorkerMissing: (group) => this.#serve(group),
    });
    const own = this.#asClient(env);
    const keep = retentionOf(env.RETENTION_DAYS);
    this.#alarm = new Alarm({
      ...{ storage, sql: this.#sql, store, notes: this.#notes, resonate: this.#resonate, keep },
      files: new FileSweep({ env, client: own.client, notes: this.#notes, keep }),
      pausedUntil: () => this.#pausedUntil,
    });
    this.#streams = new PollStreams(this.#resonate, new Serving(this.#notes), durable);
    if (env.WORKER && env.RUNS_IN === "container") {
      this.#container = new ContainerWorker(env.WORKER, durable);
    } else if (env.RUNNER && env.RUNS_IN !== "container") {
      const runners = located(env.RUNNER, env);
      const { CALLER, RESONATE_NAMESPACE: prefix = "" } = env;
      const reports =
        CALLER && hasOperators(env)
          ? new RunnerReports({ objects: located(CALLER, env), namespace: prefix, group: this.#group, most: SLOTS })
          : undefined;
      this.#runners = new RunnerPool({
        ...{ resonate: this.#resonate, namespace: runners, group: this.#group, prefix, durable, reports },
      });
    }
    this.#reports = env.CALLER && new CallerReports({ ...own, objects: located(env.CALLER, env), durable });
    void state.blockConcurrencyWhile(() => this.#alarm.restore());
  }

  async fetch(request: Request): Promise<Response> {
    this.#requests += 1;
    const { method } = request;
    const { pathname } = new URL(request.url);
    if (pathname.startsWith(PUBLIC)) return this.#fetchPublic(request, pathname.slice(PUBLIC.length));
    if (method === "POST" && pathname === "/") return this.#answer(request);
    if (method !== "GET" && method !== "HEAD") return new Response("404 Not Found", { status: 404 });
    const [, group, id] = POLL.exec(pathname) ?? [];
    if (group !== undefined && id !== undefined) return this.#poll(request, decodePart(group), decodePart(id));
    if (pathname === "/health" || pathname === "/ready") return new Response();
    if (pathname === "/key") return new Response(this.#key());
    const [, waiting] = WAITING.exec(pathname) ?? [];
    if (waiting !== undefined) return Response.json({ isWaiting: this.#isWaiting(decodePart(waiting)) });
    if (pathname === "/usage") return Response.json(this.usage());
    return new Response("404 Not Found", { status: 404 });
  }

  /** Answers requests of workers and operators from outside of the account. */
  async #fetchPublic(request: Request, pathname: string): Promise<Response> {
    if (request.method === "POST" && (pathname === "" || pathname === "/")) {
      return this.#answer(request, (auth, asked) => {
        if (isAllowed(auth, this.#env.OPERATOR_TOKENS)) return undefined;
        if (!isAllowed(auth, this.#env.RESONATE_TOKENS)) return 401;
        return !asked || isWithinNamespace(asked, this.#env) ? undefined : 403;
      });
    }
    if (request.method === "GET" && pathname === "/ready") return new Response();
    const [, token] = /^Bearer +(\S+)$/i.exec(request.headers.get("authorization") ?? "") ?? [];
    if (pathname.startsWith(OPERATE)) {
      if (!isAllowed(token, this.#env.OPERATOR_TOKENS)) return new Response("Unauthorized", { status: 401 });
      return this.#operator.fetch(request, pathname.slice(OPERATE.length));
    }
    const [, group, id] = POLL.exec(pathname) ?? [];
    if (request.method !== "GET" || group === undefined || id === undefined) return new Response(null, { status: 404 });
    if (!isAllowed(token, this.#env.RESONATE_TOKENS)) return new Response("Unauthorized", { status: 401 });
    // In this group, the edge receives the news of all its callers.
    if (decodePart(group) === "edge") return new Response("Forbidden", { status: 403 });
    return this.#poll(request, decodePart(group), decodePart(id));
  }

  /** The requests, alarms, charged rows and milliseconds since the object woke, and its size in bytes. */
  usage() {
    const { read, written } = this.#sql.rows;
    return {
      ...{ requests: this.#requests, alarms: this.#alarms, rows: { read, written } },
      ...{ awake: Date.now() - this.#startedAt, size: this.#databaseSize() },
    };
  }

  get pausedUntil(): number {
    return this.#pausedUntil;
  }

  pause(until: number): void {
    this.#pausedUntil = until;
    this.#streams.endAll();
    this.#runners?.leave();
    this.#alarm.set();
  }

  resume(): void {
    this.#pausedUntil = 0;
    if (this.#resonate.isWaiting(this.#group)) this.#serve(this.#group);
    this.#alarm.set();
  }

  /** Has the account execute the tasks of its group. Tasks of other groups wait for their workers, which have special resources. */
  #serve(group: string): void {
    if (Date.now() < this.#pausedUntil || group !== this.#group) return;
    this.#runners?.serve();
    this.#container?.wake();
  }

  /** Whether the cron trigger is to visit all containers of a group: a job waits, or has just woken the first one. */
  #isWaiting(group: string): boolean {
    if (group === this.#group && this.#container?.isStarting) return true;
    return this.#resonate.isWaiting(group);
  }

  async alarm(): Promise<void> {
    this.#alarms += 1;
    await this.#alarm.handle();
  }

  /** A client of this server within the object, with the deployment's keys for encrypted values. */
  #asClient({ RESONATE_NAMESPACE: namespace = "", ENCRYPTION_KEYS }: ObjectEnv) {
    const ask = (url: string, init: RequestInit) => this.#answer(new Request(url, init));
    const address = { RESONATE_URL: "http://resonate", RESONATE_GROUP: "", RESONATE_NAMESPACE: namespace };
    const endpoint = { ...endpointOf({ ...address, ENCRYPTION_KEYS }), fetch: ask as typeof fetch };
    return { client: new ResonateClient(endpoint), namespace };
  }

  /** The key that seals the deployment's task ids. It is created at the first request for it. */
  #key(): string {
    const known = this.#notes.get("key");
    if (known !== undefined) return known;
    const made = btoa(String.fromCharCode(...crypto.getRandomValues(new Uint8Array(48))));
    this.#notes.set("key", made);
    return made;
  }

  async #answer(request: Request, refuse: Refuse = () => undefined): Promise<Response> {
    const body = await readBytes(request, MAX_BODY);
    if (body === 408) return new Response("408 Request Timeout", { status: 408 });
    if (body === 413) return new Response(TOO_LARGE, { status: 413 });
    if (Date.now() < this.#pausedUntil) return new Response(PAUSED, { status: 503 });
    const { status, text, type } = await respondTo(this.#resonate, body, request.headers.get("content-type"), refuse);
    return new Response(text, { status, headers: { "content-type": type } });
  }

  #poll(request: Request, group: string, id: string): Response {
    const headers = { "content-type": "text/event-stream", "cache-control": "no-cache" };
    if (request.method === "HEAD") return new Response(null, { headers });
    if (Date.now() < this.#pausedUntil) return new Response(PAUSED, { status: 503 });
    const stream = this.#streams.connect(group, id, request.signal);
    if (!stream) return new Response("Poll registration at capacity", { status: 503 });
    if (group === this.#group) this.#runners?.leave();
    return new Response(stream, { headers });
  }
}
