/** The edge's side of the callers' objects. */

import type { Caller } from "../../core/author/caller.ts";
import type {
  CallerLimits,
  CallerRecord,
  CallerRecords,
  ListedJob,
  ListQuery,
  Reserved,
  SeenJob,
  StartedJob,
} from "../../core/jobs/caller-record.ts";
import type { Reported } from "../../core/jobs/reports.ts";
import { ResonateRefused, ResonateUnavailable } from "../../core/resonate/connection/failures.ts";
import { callerName, operateName } from "../../core/resonate/object-address.ts";
import { methodsOf, type ObjectCalls } from "../../core/resonate/object-calls.ts";
import { within } from "../../core/resonate/pacing/backoff.ts";
import type { Room, RoomPage, RoomPosition, RoomRow } from "../../features/backup/room-rows.ts";
import type { Narrowed } from "../../features/events/event-log.ts";
import type { OperateCalls } from "../../features/operators/calls.ts";
import { type ReportStart, seldom } from "../../features/operators/starts.ts";
import type { Occurrence } from "../../features/schedules/occurrence.ts";
import type { Granted, HookKey, HookRequest, Refused } from "../../features/web-hooks/web-hooks.ts";
import type { EdgeLog } from "../http/log.ts";
import type { Seen } from "./seen.ts";

/** An answer, or the failure of the Resonate server as data: an error loses its class in a call to an object. */
export type Answer<T> = (
  | { done: T }
  | { failed: { message: string; status: number | undefined; isRefused: boolean } }
) & {
  /** How many calls to the Resonate server it took, where the caller is charged for them. */
  asked?: number;
};

/** The part of a Durable Object namespace that is used. */
interface CallerNamespace {
  idFromName(name: string): object;
  get(id: object): ObjectCalls;
}

export interface EventQuery {
  name: string;
  narrowed: Narrowed;
  /** The position up to which the caller has read; null: from now on. */
  cursor: string | null;
  maxAgeMs?: number | undefined;
  limit: number;
  /** How long to wait for the first event, in milliseconds. */
  wait?: number | undefined;
}

export interface EventPage {
  events: Occurrence[];
  /** The positions from which and up to which the log was read. */
  from: string;
  cursor: string;
  truncated: boolean;
  hasMore: boolean;
  /** Whether jobs are under way. */
  isBusy: boolean;
}

/** The methods of the object that lists the callers' objects, for those objects and for operators. */
interface RoomListMethods {
  listRoom(key: string): Promise<void>;
  readRooms(after: RoomPosition | undefined): Promise<RoomPage>;
  writeRooms(rows: readonly RoomRow[]): Promise<void>;
  forgetRoom(key: string): Promise<void>;
}

/** The methods of a caller's object: see {@link CallerRecord}. */
export interface CallerMethods extends Room, RoomListMethods {
  reserve(key: string, job: StartedJob, limits: CallerLimits): Promise<Answer<Reserved>>;
  stored(): Promise<number>;
  /** Makes the schedules of the deployment's definitions. For the object whose key is empty. */
  deploy(): Promise<Answer<void>>;
  forget(id: string, isHidden: boolean): Promise<void>;
  /** Whether the current deployment blocks the caller: an edge of an earlier one may still hold streams. */
  isBlocked(caller: Caller): Promise<boolean>;
  note(jobs: readonly SeenJob[], onlyKnown: boolean): Promise<void>;
  /** Records jobs of the caller that have ended or that durable functions have started, as reported or as a look finds them. */
  heard(key: string, ended: readonly Reported[], started: readonly Reported[]): Promise<void>;
  list(key: string, query: ListQuery): Promise<Answer<ListedJob[]>>;
  events(caller: Caller, query: EventQuery): Promise<Answer<EventPage>>;
  subscribe(caller: Caller, request: HookRequest): Promise<Answer<Granted | Refused>>;
  unsubscribe(caller: Caller, key: HookKey): Promise<Answer<object | Refused>>;
  /** Who receives events of the caller's jobs, or of one `job`, and what is scheduled. First ends the subscription `end`. */
  seen(key: string, job?: string, end?: string): Promise<Answer<Seen>>;
  /** For the object through which operators see and act. */
  operate(call: keyof OperateCalls, given: unknown[]): Promise<Answer<unknown>>;
}

/**
 * When making the schedules of definitions is tried again: after a failure, and if the request that tried has ended without an
 * outcome; in milliseconds.
 */
const SCHEDULES = { failed: 1_000, turn: 30_000 };

/** How long a start waits until operators know of it, in milliseconds. */
const TELLING = 2_000;

/**
 * The objects of a deployment's callers, and those for operators and backups. The namespace at the Resonate server identifies
 * the deployment. Calls throw {@link ResonateUnavailable} where an object cannot be reached.
 */
export class Callers {
  readonly #objects: CallerNamespace;
  readonly #namespace: string;
  #schedulesDue = 0;

  constructor(objects: CallerNamespace, namespace: string) {
    this.#objects = objects;
    this.#namespace = namespace;
  }

  of(key: string): CallerMethods {
    return this.#named(callerName(this.#namespace, key));
  }

  /** The object that lists the objects of the deployment's callers. */
  get rooms(): RoomListMethods {
    return this.#named(`callers ${this.#namespace}`);
  }

  #named(name: string): CallerMethods {
    return methodsOf(this.#objects.get(this.#objects.idFromName(name)));
  }

  /** The records of the deployment's callers, each of whom has these limits. */
  records(limits: CallerLimits): CallerRecords {
    return { limits, of: (key, charge) => this.#record(key, charge) };
  }

  #record = (key: string, charge?: (calls: number) => void): CallerRecord => ({
    reserve: (job, most) => ask(() => this.of(key).reserve(key, job, most), charge),
    stored: () => reached(() => this.of(key).stored()),
    forget: (id, isHidden) => reached(() => this.of(key).forget(id, isHidden)),
    list: (query) => ask(() => this.of(key).list(key, query)),
    note: (jobs, onlyKnown = false) => reached(() => this.of(key).note(jobs, onlyKnown)),
  });

  events(caller: Caller, query: EventQuery): Promise<EventPage> {
    return ask(() => this.of(caller.key).events(caller, query));
  }

  subscribe(caller: Caller, request: HookRequest): Promise<Granted | Refused> {
    return ask(() => this.of(caller.key).subscribe(caller, request));
  }

  unsubscribe(caller: Caller, key: HookKey): Promise<object | Refused> {
    return ask(() => this.of(caller.key).unsubscribe(caller, key));
  }

  seen({ key }: Caller, job?: string, end?: string): Promise<Seen> {
    return ask(() => this.of(key).seen(key, job, end));
  }

  /** Whether a caller has been blocked since its request was admitted; false where that cannot be asked. */
  isBlocked(caller: Caller): Promise<boolean> {
    return reached(() => this.of(caller.key).isBlocked(caller)).catch(() => false);
  }

  /** Makes the schedules of the deployment's definitions, once. After a failure a later call tries again. */
  async makeSchedules(log: EdgeLog): Promise<void> {
    if (Date.now() < this.#schedulesDue) return;
    this.#schedulesDue = Date.now() + SCHEDULES.turn;
    try {
      await ask(() => this.of("").deploy());
      this.#schedulesDue = Number.POSITIVE_INFINITY;
    } catch (error) {
      this.#schedulesDue = Date.now() + SCHEDULES.failed;
      log.warn("schedules of definitions are not made yet", { reason: String((error as Error).message) });
    }
  }

  /** Calls the object through which operators see and act. */
  operate<K extends keyof OperateCalls>(call: K, ...given: Parameters<OperateCalls[K]>) {
    const answer = ask(() => this.#named(operateName(this.#namespace)).operate(call, given));
    return answer as Promise<Awaited<ReturnType<OperateCalls[K]>>>;
  }

  /** Reports a start of each kind to operators, once in a while. The start does not wait long for it. */
  readonly reportStart: ReportStart = seldom((kind, job) =>
    within(
      this.operate("started", kind, job).catch(() => {}),
      TELLING,
    ),
  );
}

/** Undefined where no Durable Object is bound as `CALLER`. */
export const callersOf = ({ CALLER, RESONATE_NAMESPACE }: { CALLER?: unknown; RESONATE_NAMESPACE: string }) =>
  CALLER ? new Callers(CALLER as CallerNamespace, RESONATE_NAMESPACE) : undefined;

async function ask<T>(call: () => Promise<Answer<T>>, charge?: (calls: number) => void): Promise<T> {
  const answer = await reached(call);
  if (answer.asked) charge?.(answer.asked);
  if ("done" in answer) return answer.done;
  const { message, isRefused, status } = answer.failed;
  throw new (isRefused ? ResonateRefused : ResonateUnavailable)(message, { status });
}

async function reached<T>(call: () => Promise<T>): Promise<T> {
  try {
    return await call();
  } catch (cause) {
    throw new ResonateUnavailable("the record of its caller could not be reached", { cause });
  }
}

/** A warning of what does not work without `CALLER`; undefined where it is bound. */
export const withoutRecords = ({ CALLER }: { CALLER?: unknown }): string | undefined =>
  CALLER
    ? undefined
    : "wrangler.toml binds no CALLER (class CallerObject): jobs are not counted (MAX_JOBS, MAX_STORED_BYTES), there are no " +
      "events and no schedules, and list_jobs searches the Resonate server, if that allows it";
