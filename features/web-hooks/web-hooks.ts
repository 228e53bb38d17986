/**
 * Delivers a caller's events by web hook. All outstanding messages are in the object's storage: an attempt that a crash cuts
 * off is repeated under the same message id.
 */
import type { Caller } from "../../core/author/caller.ts";
import { jsonOf } from "../../core/resonate/json.ts";
import type { ObjectSql } from "../../core/resonate/object-storage.ts";
import { Sealing } from "../../core/resonate/sealing.ts";
import { sha256Of } from "../../core/resonate/sha256.ts";
import { type Failure, type Hook, type Outcome, post, readDocument } from "../../functions/http/signed-post.ts";
import type { SeenSubscription } from "../../functions/objects/seen.ts";
import type { EventLog, LoggedEvent, LogQuery, Narrowed, Wanted } from "../events/event-log.ts";
import type { Occurrence } from "../schedules/occurrence.ts";
import { type Delivery, HookTable, NEVER, type Subscription } from "./hook-table.ts";

/** The pauses after failed attempts, in milliseconds. After the last attempt an event is given up, and a gap is reported. */
const PAUSES = [5_000, 20_000, 60_000, 180_000, 420_000];

/** The pause between attempts to report a gap after the last of {@link PAUSES}, in milliseconds. */
const GAP_PAUSE = 15 * 60_000;

/** After how many milliseconds an attempt is repeated that a crash cut off. */
const ATTEMPT = 10_000;

/** The most subscriptions, deliveries under way to one and to all, messages waiting for one, and deliveries and checks a minute. */
const MOST = { subscriptions: 50, toOne: 4, toAll: 24, waiting: 100, aMinute: 600, verifications: 10 };

/** How long subscriptions last: by default, at least and at most, in milliseconds. */
const LIFE = { byDefault: 86_400_000, least: 60_000, most: 7 * 86_400_000 };

/** How long a replaced secret still signs, and how long an address stays verified, in milliseconds. */
const ROTATION = 10 * 60_000;
const VERIFIED = 7 * 86_400_000;

/** A receiver that fails at least this long (in milliseconds) and this often is left alone until its client refreshes. */
const SUSPEND = { after: 3_600_000, failures: 20 };

const MINUTE = 60_000;

/** What a client subscribes to, and where it wants it delivered. */
export interface HookRequest extends Omit<LogQuery, "limit" | keyof Wanted> {
  narrowed: Narrowed;
  url: string;
  secret: string;
  ttlMs?: number | null | undefined;
}

export type HookKey = Pick<HookRequest, "name" | "narrowed" | "url">;

export interface Granted {
  id: string;
  refreshBefore: string;
  cursor: string;
  truncated: boolean;
  deliveryStatus?: object;
}

/** Why a request was not granted: an error of the extension. */
export interface Refused {
  refused: "NotFound" | "ResourceExhausted" | "CallbackEndpointError" | "InvalidUrl";
  data: Record<string, unknown>;
}

/** Why a subscription has ended, in the extension's codes. */
export interface SubscriptionError {
  code: number;
  message: string;
  data: Record<string, unknown>;
}

interface HookWorld {
  sql: ObjectSql;
  log: EventLog;
  encryptionKeys: string | undefined;
  /** The filter in the log's terms. */
  jobsOf(narrowed: Narrowed): Wanted;
  /** The event as its receiver gets it. @throws {Error} where it cannot be read now */
  tell(event: LoggedEvent, caller: Caller): Promise<Occurrence>;
  /** Sends requests to the receiver at an address. */
  fetchTo(url: string): typeof fetch;
  /** The error with which a caller's subscriptions to a type of events end; undefined while they continue. */
  endOf(caller: Caller, name: string): SubscriptionError | undefined;
  /** The error of a subscription that its owner has ended on a page. */
  ended: SubscriptionError;
  /** Sets the alarm to the earliest time at which work is due. */
  arm(): Promise<void>;
}

export class WebHooks {
  readonly #world: HookWorld;
  readonly #table: HookTable;
  readonly #sealing: Sealing;
  #running: Promise<void> | undefined;
  #wake: (() => void) | undefined;
  /** For each subscription, the cursor up to which the log was searched for its events. */
  readonly #scanned = new Map<string, string>();
  #minute = { at: 0, deliveries: 0, verifications: 0 };

  constructor(world: HookWorld) {
    this.#world = world;
    this.#table = new HookTable(world.sql);
    this.#sealing = new Sealing(world.encryptionKeys);
  }

  /** When the next message is due or a subscription expires, in milliseconds since the epoch; infinite without either. */
  nextAt(): number {
    return Math.min(this.#table.nextAt(), ...this.#table.subscriptions().map(({ expires_at }) => expires_at));
  }

  get names(): string[] {
    const now = Date.now();
    const live = this.#table.subscriptions().filter(({ expires_at, ended }) => expires_at > now && ended === null);
    return [...new Set(live.map(({ name }) => name))];
  }

  async subscribe(caller: Caller, request: HookRequest): Promise<Granted | Refused> {
    const { name, url, secret, cursor, maxAgeMs, ttlMs } = request;
    const id = await idOf(caller, request);
    const now = Date.now();
    this.#expire(now);
    if (this.#isFull(id)) return exhausted("subscriptions");
    if (!this.#table.isVerified(url, now)) {
      if (!this.#take("verifications")) return exhausted("verifications");
      const reason = await this.#verify(id, url, secret);
      if (reason !== undefined) return { refused: "CallbackEndpointError", data: { reason } };
      this.#table.verify(url, Date.now() + VERIFIED);
    }
    const sealed = await this.#seal(id, secret);
    const earlier = this.#table.get(id)?.secret;
    // A secret that cannot be decrypted signs no more.
    const isRotated = earlier !== undefined && (await this.#open(id, earlier).catch(() => secret)) !== secret;
    // Others may have come first while this one was checked. From here on nothing is awaited.
    if (this.#isFull(id)) return exhausted("subscriptions");
    // A subscription that has ended does not continue, also if its receiver has not been told yet.
    if (this.#table.get(id)?.ended != null) this.#remove(id);
    const known = this.#table.get(id);
    const begin = this.#world.log.begin(cursor, maxAgeMs, Date.now());
    const expires_at =
      Date.now() +
      Math.min(LIFE.most, Math.max(LIFE.least, ttlMs === undefined ? LIFE.byDefault : (ttlMs ?? LIFE.most)));
    const status = known && this.#statusOf(known);
    const truncated = known ? this.#table.takeGap(id) : begin.truncated;
    this.#table.put({
      ...{ id, name, url, secret: sealed, expires_at, active: 1, ended: null },
      narrowing: JSON.stringify(request.narrowed),
      caller: JSON.stringify(caller),
      old_secret: known ? (isRotated ? earlier : known.old_secret) : null,
      old_until: known ? (isRotated ? Date.now() + ROTATION : known.old_until) : 0,
      position: known?.position ?? begin.cursor,
      last_delivery_at: known?.last_delivery_at ?? null,
      last_error: known?.last_error ?? null,
      failed_since: null,
      failures: 0,
    });
    if (known?.active === 0)
      this.#world.sql.all("UPDATE deliveries SET next_at = ? WHERE subscription = ?", Date.now(), id);
    return {
      id,
      refreshBefore: new Date(expires_at).toISOString(),
      cursor: this.#watermark(id, -1),
      truncated,
      ...(status && { deliveryStatus: status }),
    };
  }

  #isFull(id: string): boolean {
    return !this.#table.get(id) && this.#table.subscriptions().length >= MOST.subscriptions;
  }

  async unsubscribe(caller: Caller, key: HookKey): Promise<object | Refused> {
    const id = await idOf(caller, key);
    this.#expire(Date.now());
    if (!this.#table.get(id)) return { refused: "NotFound", data: { kind: "subscription" } };
    this.#remove(id);
    return {};
  }

  /** The subscriptions as their caller sees them. */
  list(): SeenSubscription[] {
    this.#expire(Date.now());
    const live = this.#table.subscriptions().filter(({ ended }) => ended === null);
    return live.map((subscription) => ({
      id: subscription.id,
      name: subscription.name,
      narrowed: JSON.parse(subscription.narrowing),
      host: new URL(subscription.url).host,
      until: new Date(subscription.expires_at).toISOString(),
      status: this.#statusOf(subscription),
    }));
  }

  /** Ends a subscription at its caller's request, and tells its receiver. */
  end(id: string): void {
    if (this.#table.get(id)?.ended === null) this.#end(id, this.#world.ended, Date.now());
  }

  /** Drops cached cursors after the log and the subscriptions were replaced. */
  reset(): void {
    this.#scanned.clear();
  }

  /** Delivers everything that is due, and events that are logged in the meantime. */
  run(): Promise<void> {
    this.#wake?.();
    this.#running ??= this.#deliver().finally(() => {
      this.#running = undefined;
    });
    return this.#running;
  }

  async #deliver(): Promise<void> {
    const under = new Map<string, Promise<void>>();
    const counts = new Map<string, number>();
    for (;;) {
      const now = Date.now();
      this.#expire(now);
      for (const subscription of this.#table.subscriptions()) this.#fill(subscription, now);
      // A slow receiver with many messages does not delay those of others.
      const load = ({ subscription, turn }: { subscription: string; turn: number }) =>
        turn + (counts.get(subscription) ?? 0);
      for (const delivery of this.#table.due(now, MOST.toOne).sort((a, b) => load(a) - load(b))) {
        const { subscription, position, type } = delivery;
        const key = `${subscription} ${type} ${position}`;
        const count = counts.get(subscription) ?? 0;
        if (under.has(key) || count >= MOST.toOne || under.size >= MOST.toAll) continue;
        if (!this.#take("deliveries")) {
          this.#table.postpone(now, this.#minute.at + MINUTE);
          break;
        }
        counts.set(subscription, count + 1);
        const attempt = this.#attempt(delivery)
          .catch(() => {}) // The attempt is repeated later.
          .finally(() => {
            under.delete(key);
            counts.set(subscription, (counts.get(subscription) ?? 1) - 1);
          });
        under.set(key, attempt);
      }
      if (under.size === 0) return;
      const woken = Promise.withResolvers<void>();
      this.#wake = woken.resolve;
      await Promise.race([...under.values(), woken.promise]);
    }
  }

  /** Makes deliveries of logged events, as long as fewer than a bounded number wait. */
  #fill({ id, name, narrowing, position, caller, ended }: Subscription, now: number): void {
    if (ended !== null) return;
    const error = this.#world.endOf(JSON.parse(caller), name);
    if (error) {
      this.#end(id, error, now);
      return;
    }
    const room = MOST.waiting - this.#table.outstanding(id);
    if (room <= 0) return;
    const wanted = this.#world.jobsOf(JSON.parse(narrowing));
    const page = this.#world.log.read({ ...wanted, name, cursor: this.#scanned.get(id) ?? position, limit: room }, now);
    const isQuiet = page.events.length === 0 && !page.truncated;
    this.#scanned.set(id, page.cursor);
    if (isQuiet && page.hasMore) {
      this.#fill(this.#table.get(id) as Subscription, now);
      return;
    }
    if (isQuiet && !this.#world.log.isFar(position, now)) return;
    this.#world.sql.transaction(() => {
      if (page.truncated) this.#tellGap(id, now);
      for (const event of page.events) {
        const of = { subscription: id, position: event.position, message_id: event.id };
        this.#table.add({ ...of, type: "event", attempts: 0, next_at: now });
      }
      this.#table.change(id, { position: page.cursor });
    });
  }

  async #attempt(delivery: Delivery): Promise<void> {
    const subscription = this.#table.get(delivery.subscription);
    if (!subscription) return;
    this.#table.schedule(delivery, delivery.attempts, Date.now() + ATTEMPT);
    // Nothing is sent before the time of the next attempt and the alarm are stored.
    await this.#world.arm();
    const body = await this.#bodyOf(delivery, subscription);
    if (body === undefined) {
      // The log has dropped the event.
      this.#table.done(delivery);
      return this.#tellGap(subscription.id, Date.now());
    }
    const { id, url } = subscription;
    const secrets = await this.#secretsOf(subscription).catch(() => undefined);
    // It is left alone until its client, who can see that, gives its secret again.
    if (!secrets) return this.#table.change(id, { active: 0 });
    const hook = { url, id: delivery.message_id, subscription: id, body, secrets };
    this.#note(delivery, await post(this.#world.fetchTo(url), hook));
  }

  #note(delivery: Delivery, outcome: Outcome): void {
    const now = Date.now();
    const subscription = this.#table.get(delivery.subscription);
    if (!subscription) return;
    const { id, failed_since, failures, ended } = subscription;
    // The client has subscribed again during this attempt.
    if (delivery.type === "terminated" && ended === null) return;
    const status = outcome.ok ? undefined : outcome.status;
    if (status === 410 && delivery.type === "gap") {
      // The receiver does not want the gap. The client learns of it when it subscribes again.
      this.#table.schedule(delivery, delivery.attempts, NEVER);
      return;
    }
    if (outcome.ok || status === 410 || (status === 413 && delivery.type === "event")) {
      this.#table.done(delivery);
      if (outcome.ok)
        this.#table.change(id, { last_delivery_at: now, last_error: null, failed_since: null, failures: 0 });
      else if (status === 413) this.#tellGap(id, now);
      if (delivery.type === "terminated") this.#remove(id);
      return;
    }
    const since = failed_since ?? now;
    const isSuspended = now - since >= SUSPEND.after && failures + 1 >= SUSPEND.failures;
    const active = isSuspended ? 0 : 1;
    this.#table.change(id, { last_error: outcome.reason, failed_since: since, failures: failures + 1, active });
    const pause = PAUSES[delivery.attempts];
    if (pause !== undefined) {
      this.#table.schedule(delivery, delivery.attempts + 1, now + pause * (0.9 + Math.random() / 5));
    } else if (delivery.type === "gap") {
      this.#table.schedule(delivery, delivery.attempts, now + GAP_PAUSE);
    } else {
      this.#table.done(delivery);
      if (delivery.type === "terminated") this.#remove(id);
      else this.#tellGap(id, now);
    }
  }

  async #bodyOf({ type, position }: Delivery, { id, caller, ended }: Subscription): Promise<string | undefined> {
    if (type === "terminated") return JSON.stringify({ type, error: JSON.parse(ended ?? "{}") });
    if (type === "gap") return JSON.stringify({ type, cursor: this.#watermark(id, -1) });
    const event = this.#world.log.at(position);
    if (!event) return undefined;
    const occurrence = await this.#world.tell(event, JSON.parse(caller));
    return JSON.stringify({ ...occurrence, cursor: this.#watermark(id, position) });
  }

  /** The cursor up to which all events are delivered or given up. The event at `position` (-1: none) counts as delivered. */
  #watermark(id: string, position: number): string {
    const { log } = this.#world;
    const first = this.#table.firstOpen(id, position);
    if (position >= 0) return log.cursorAt(first === undefined || first > position ? position : first - 1);
    return first === undefined
      ? (this.#scanned.get(id) ?? this.#table.get(id)?.position ?? log.cursorAt(0))
      : log.cursorAt(first - 1);
  }

  #tellGap(subscription: string, now: number): void {
    const message_id = `msg_gap_${crypto.randomUUID()}`;
    this.#table.add({ subscription, position: 0, type: "gap", message_id, attempts: 0, next_at: now });
  }

  #end(subscription: string, error: SubscriptionError, now: number): void {
    this.#world.sql.all("DELETE FROM deliveries WHERE subscription = ?", subscription);
    this.#table.change(subscription, { ended: JSON.stringify(error), active: 1 });
    const message_id = `msg_terminated_${crypto.randomUUID()}`;
    this.#table.add({ subscription, position: 0, type: "terminated", message_id, attempts: 0, next_at: now });
  }

  #expire(now: number): void {
    for (const { id } of this.#world.sql.all("SELECT id FROM subscriptions WHERE expires_at <= ?", now))
      this.#remove(String(id));
  }

  /** Removes a subscription. One that is made again begins at its own cursor. */
  #remove(id: string): void {
    this.#table.remove(id);
    this.#scanned.delete(id);
  }

  /** Asks a receiver whether it wants deliveries. Returns why not; undefined where it does. */
  async #verify(id: string, url: string, secret: string): Promise<Failure | undefined> {
    const challenge = crypto.randomUUID();
    const body = JSON.stringify({ type: "verification", challenge });
    const hook: Hook = { url, secrets: [secret], id: `msg_verification_${challenge}`, subscription: id, body };
    const outcome = await post(this.#world.fetchTo(url), hook, true);
    if (outcome.ok && (jsonOf(outcome.text) as { challenge?: unknown } | null)?.challenge === challenge)
      return undefined;
    if (outcome.ok || outcome.status !== undefined) {
      const document = await readDocument(
        this.#world.fetchTo(url),
        new URL("/.well-known/mcp-webhook-receiver.json", url),
      );
      const { receivers } = (document ?? {}) as { receivers?: unknown };
      const { pathname } = new URL(url);
      const isListed = (path: unknown) => typeof path === "string" && path.startsWith("/") && isBelow(pathname, path);
      if (Array.isArray(receivers) && receivers.some(isListed)) return undefined;
    }
    return outcome.ok ? "challenge_failed" : outcome.reason;
  }

  #statusOf({ active, last_delivery_at, last_error, failed_since }: Subscription): SeenSubscription["status"] {
    const at = (time: number | null) => (time === null ? null : new Date(time).toISOString());
    const isThrottled = this.#minute.at + MINUTE > Date.now() && this.#minute.deliveries >= MOST.aMinute;
    return {
      active: active === 1,
      lastDeliveryAt: at(last_delivery_at),
      lastError: last_error,
      ...(failed_since !== null && { failedSince: at(failed_since) }),
      ...(isThrottled && { throttled: true, retryAfterMs: this.#minute.at + MINUTE - Date.now() }),
    };
  }

  /** Counts towards the limit of the current minute. Returns false where that is reached. */
  #take(what: "deliveries" | "verifications"): boolean {
    if (Date.now() >= this.#minute.at + MINUTE) this.#minute = { at: Date.now(), deliveries: 0, verifications: 0 };
    const most = what === "deliveries" ? MOST.aMinute : MOST.verifications;
    if (this.#minute[what] >= most) return false;
    this.#minute[what] += 1;
    return true;
  }

  async #secretsOf({ id, secret, old_secret, old_until }: Subscription): Promise<string[]> {
    const all = [secret, ...(old_secret !== null && old_until > Date.now() ? [old_secret] : [])];
    return Promise.all(all.map((one) => this.#open(id, one)));
  }

  /** Encrypts a secret where the deployment encrypts its state. */
  async #seal(id: string, secret: string): Promise<string> {
    if (!this.#sealing.encode) return secret;
    const { param } = await this.#sealing.seal({ id, param: { headers: {}, data: secret.slice("whsec_".length) } });
    return param.data;
  }

  async #open(id: string, stored: string): Promise<string> {
    if (stored.startsWith("whsec_")) return stored;
    const { param } = await this.#sealing.decodeRecord({ id, param: { data: stored }, value: {} } as never);
    return `whsec_${param.data}`;
  }
}

const exhausted = (limit: "subscriptions" | "verifications"): Refused => ({
  refused: "ResourceExhausted",
  data: { limit, max: MOST[limit] },
});

/** The id of a subscription: the same for the same caller, address, type and filter. */
async function idOf({ key }: Caller, { url, name, narrowed }: HookKey): Promise<string> {
  const { jobNames = null, kinds = null, labels, schedule = [] } = narrowed;
  const text = JSON.stringify([key, url, name, jobNames, kinds, ...[schedule].flat(), ...(labels ? [{ labels }] : [])]);
  return `sub_${(await sha256Of(text)).slice(0, 24)}`;
}

const isBelow = (path: string, folder: string): boolean =>
  path === folder || path.startsWith(folder.endsWith("/") ? folder : `${folder}/`);
