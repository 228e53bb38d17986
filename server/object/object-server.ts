/** The embedded Resonate server in a SQLite-backed Durable Object: `fetch` serves the protocol, the alarm handles time-outs. */

import { hasOperators, type OperatorEnv, retentionOf } from "../../core/jobs/index.ts";
import { endpointOf, type ObjectAddress, ResonateClient, readBytes, withLocation } from "../../core/resonate/index.ts";
import { AccountSweep } from "../../features/files/account-sweep.ts";
import type { FileBindings } from "../../features/files/location-in-workers.ts";
import { Resonate } from "../engine/resonate.ts";
import { Store } from "../engine/store.ts";
import { BODY_TOO_LARGE, MAX_BODY_BYTES, type Refuse, respondTo } from "../wire/answer.ts";
import { decodePart, EVENT_STREAM_HEADERS, parsePollPath } from "../wire/event-stream.ts";
import { isAllowed, isWithinNamespace, PUBLIC_PATH, type PublicEnv } from "./access.ts";
import { Alarm } from "./alarm.ts";
import { type CallerObjects, CallerReports } from "./caller-reports.ts";
import { ContainerWorker } from "./execution/container.ts";
import { MAX_TASKS_PER_FUNCTION, type RunnerNamespace, RunnerPool } from "./execution/runner-pool.ts";
import { type OperateObjects, RunnerReports } from "./execution/runner-reports.ts";
import { logError } from "./log.ts";
import { type BackupEnv, OPERATE_PATH, Operator, type PausableServer } from "./operate.ts";
import type { ObjectState } from "./platform.ts";
import { PollStreams } from "./poll-streams.ts";
import { ServingMark } from "./serving-mark.ts";
import { StoreSql } from "./store-sql.ts";
import { type Notes, openTables } from "./tables.ts";

const WAITING_PATH = /^\/waiting\/([^/]+)$/;
const SERVER_PAUSED = "The server is paused: an operator reads its state, or has moved it";

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
export class ObjectServer implements PausableServer {
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
      runSoon: (work) => queueMicrotask(work),
      onCommit: (changes) => {
        this.#alarm.set();
        this.#reports?.onCommit(changes);
      },
      onWorkerMissing: (group) => this.#startWorker(group),
    });
    const client = this.#ownClient(env);
    const retention = retentionOf(env.RETENTION_DAYS);
    this.#alarm = new Alarm({
      storage,
      sql: this.#sql,
      store,
      notes: this.#notes,
      resonate: this.#resonate,
      retention,
      files: new AccountSweep({
        env,
        client,
        notes: this.#notes,
        retention,
        onFailure: (error) => logError("files were not swept", { err: error }),
      }),
      pausedUntil: () => this.#pausedUntil,
    });
    this.#streams = new PollStreams(this.#resonate, new ServingMark(this.#notes), durable);
    if (env.WORKER && env.RUNS_IN === "container") {
      this.#container = new ContainerWorker(env.WORKER, durable);
    } else if (env.RUNNER && env.RUNS_IN !== "container") {
      this.#runners = this.#runnerPool(env, withLocation(env.RUNNER, env), durable);
    }
    const { CALLER, RESONATE_NAMESPACE: namespace = "" } = env;
    this.#reports = CALLER && new CallerReports({ client, namespace, objects: withLocation(CALLER, env), durable });
    void state.blockConcurrencyWhile(() => this.#alarm.restore());
  }

  #runnerPool(env: ObjectEnv, namespace: RunnerNamespace, durable: () => Promise<void>): RunnerPool {
    const { CALLER, RESONATE_NAMESPACE: prefix = "" } = env;
    const reports =
      CALLER && hasOperators(env)
        ? new RunnerReports({
            objects: withLocation(CALLER, env),
            namespace: prefix,
            group: this.#group,
            maxConcurrent: MAX_TASKS_PER_FUNCTION,
          })
        : undefined;
    return new RunnerPool({ resonate: this.#resonate, namespace, group: this.#group, prefix, durable, reports });
  }

  async fetch(request: Request): Promise<Response> {
    this.#requests += 1;
    const { method } = request;
    const { pathname } = new URL(request.url);
    if (pathname.startsWith(PUBLIC_PATH)) return this.#fetchPublic(request, pathname.slice(PUBLIC_PATH.length));
    if (method === "POST" && pathname === "/") return this.#answer(request);
    if (method !== "GET" && method !== "HEAD") return new Response("404 Not Found", { status: 404 });
    const poll = parsePollPath(pathname);
    if (poll) return this.#poll(request, poll);
    if (pathname === "/health" || pathname === "/ready") return new Response();
    if (pathname === "/key") return new Response(this.#key());
    const [, group] = WAITING_PATH.exec(pathname) ?? [];
    if (group !== undefined) return Response.json({ isWaiting: this.#needsWorker(decodePart(group)) });
    if (pathname === "/usage") return Response.json(this.usage());
    return new Response("404 Not Found", { status: 404 });
  }

  /** Answers requests of workers and operators from outside of the account. */
  async #fetchPublic(request: Request, pathname: string): Promise<Response> {
    if (request.method === "POST" && (pathname === "" || pathname === "/")) {
      return this.#answer(request, (auth, parsedRequest) => {
        if (isAllowed(auth, this.#env.OPERATOR_TOKENS)) return undefined;
        if (!isAllowed(auth, this.#env.RESONATE_TOKENS)) return 401;
        return !parsedRequest || isWithinNamespace(parsedRequest, this.#env) ? undefined : 403;
      });
    }
    if (request.method === "GET" && pathname === "/ready") return new Response();
    const [, token] = /^Bearer +(\S+)$/i.exec(request.headers.get("authorization") ?? "") ?? [];
    if (pathname.startsWith(OPERATE_PATH)) {
      if (!isAllowed(token, this.#env.OPERATOR_TOKENS)) return new Response("Unauthorized", { status: 401 });
      return this.#operator.fetch(request, pathname.slice(OPERATE_PATH.length));
    }
    const poll = parsePollPath(pathname);
    if (request.method !== "GET" || !poll) return new Response(null, { status: 404 });
    if (!isAllowed(token, this.#env.RESONATE_TOKENS)) return new Response("Unauthorized", { status: 401 });
    // In this group, the edge receives the news of all its callers.
    if (poll.group === "edge") return new Response("Forbidden", { status: 403 });
    return this.#poll(request, poll);
  }

  /** The requests, alarms, charged rows and milliseconds since the object woke, and its size in bytes. */
  usage() {
    const { read, written } = this.#sql.rows;
    return {
      requests: this.#requests,
      alarms: this.#alarms,
      rows: { read, written },
      awake: Date.now() - this.#startedAt,
      size: this.#databaseSize(),
    };
  }

  get pausedUntil(): number {
    return this.#pausedUntil;
  }

  pause(until: number): void {
    this.#pausedUntil = until;
    this.#streams.closeAll();
    this.#runners?.disconnect();
    this.#alarm.set();
  }

  resume(): void {
    this.#pausedUntil = 0;
    if (this.#resonate.needsWorker(this.#group)) this.#startWorker(this.#group);
    this.#alarm.set();
  }

  /** Has the account execute the tasks of its group. Tasks of other groups wait for their workers, which have special resources. */
  #startWorker(group: string): void {
    if (Date.now() < this.#pausedUntil || group !== this.#group) return;
    this.#runners?.serve();
    this.#container?.wake();
  }

  /** Whether the cron trigger is to visit all containers of a group: a job waits, or has just woken the first one. */
  #needsWorker(group: string): boolean {
    if (group === this.#group && this.#container?.isStarting) return true;
    return this.#resonate.needsWorker(group);
  }

  async alarm(): Promise<void> {
    this.#alarms += 1;
    await this.#alarm.handle();
  }

  /** A client of this server within the object, with the deployment's keys for encrypted values. */
  #ownClient({ RESONATE_NAMESPACE: namespace = "", ENCRYPTION_KEYS }: ObjectEnv): ResonateClient {
    const answer = (url: string, init: RequestInit) => this.#answer(new Request(url, init));
    const address = { RESONATE_URL: "http://resonate", RESONATE_GROUP: "", RESONATE_NAMESPACE: namespace };
    const endpoint = { ...endpointOf({ ...address, ENCRYPTION_KEYS }), fetch: answer as typeof fetch };
    return new ResonateClient(endpoint);
  }

  /** The key that seals the deployment's task ids. It is created at the first request for it. */
  #key(): string {
    const notedKey = this.#notes.get("key");
    if (notedKey !== undefined) return notedKey;
    const key = btoa(String.fromCharCode(...crypto.getRandomValues(new Uint8Array(48))));
    this.#notes.set("key", key);
    return key;
  }

  async #answer(request: Request, refuse: Refuse = () => undefined): Promise<Response> {
    const body = await readBytes(request, MAX_BODY_BYTES);
    if (body === 408) return new Response("408 Request Timeout", { status: 408 });
    if (body === 413) return new Response(BODY_TOO_LARGE, { status: 413 });
    if (Date.now() < this.#pausedUntil) return new Response(SERVER_PAUSED, { status: 503 });
    const { status, text, type } = await respondTo(this.#resonate, body, request.headers.get("content-type"), refuse);
    return new Response(text, { status, headers: { "content-type": type } });
  }

  #poll(request: Request, { group, id }: { group: string; id: string }): Response {
    if (request.method === "HEAD") return new Response(null, { headers: EVENT_STREAM_HEADERS });
    if (Date.now() < this.#pausedUntil) return new Response(SERVER_PAUSED, { status: 503 });
    const stream = this.#streams.connect(group, id, request.signal);
    if (!stream) return new Response("Poll registration at capacity", { status: 503 });
    if (group === this.#group) this.#runners?.disconnect();
    return new Response(stream, { headers: EVENT_STREAM_HEADERS });
  }
}
