/**
 * Delivers a caller's events by web hook. All outstanding messages are in the object's storage: an attempt that a crash cuts
 * off is repeated under the same message id.
 */
import type { Caller } from "../../core/author/index.ts";
import type { EventSource, SubscriptionView } from "../../core/jobs/index.ts";
import { type ObjectSql, sha256Of } from "../../core/resonate/index.ts";
import { type Outcome, post } from "../../functions/http/signed-post.ts";
import { HookSecrets } from "./hook-secrets.ts";
import { type Delivery, HookTable, NEVER, type Subscription } from "./hook-table.ts";
import { MinuteLimits } from "./minute-limits.ts";
import type { Grant, HookKey, HookRequest, Refusal, SubscriptionError } from "./requests.ts";
import { verify } from "./verification.ts";

/** The pauses after failed attempts, in milliseconds. After the last attempt an event is given up, and a gap is reported. */
const RETRY_PAUSES_MS = [5_000, 20_000, 60_000, 180_000, 420_000];

/** The pause between attempts to report a gap after the last of {@link RETRY_PAUSES_MS}, in milliseconds. */
const GAP_RETRY_PAUSE_MS = 15 * 60_000;

/** After how many milliseconds an attempt is repeated that a crash cut off. */
const ATTEMPT_MS = 10_000;

const MAX_SUBSCRIPTIONS = 50;

/** The largest number of deliveries under way to one receiver and to all, and of messages that wait for one. */
const MAX_DELIVERIES_TO_ONE = 4;
const MAX_DELIVERIES = 24;
const MAX_WAITING_MESSAGES = 100;

/** The largest number of deliveries and of verifications of addresses a minute. */
const MAX_A_MINUTE = { deliveries: 600, verifications: 10 };

/** How long subscriptions last, in milliseconds. */
const DEFAULT_LIFE_MS = 86_400_000;
const MIN_LIFE_MS = 60_000;
const MAX_LIFE_MS = 7 * 86_400_000;

/** How long a replaced secret still signs, and how long an address stays verified, in milliseconds. */
const ROTATION_MS = 10 * 60_000;
const VERIFICATION_MS = 7 * 86_400_000;

/** A receiver that fails at least this long and this often is left alone until its client refreshes. */
const MIN_FAILING_MS = 3_600_000;
const MIN_FAILURES = 20;

export interface WebHookOptions {
  sql: ObjectSql;
  events: EventSource;
  encryptionKeys: string | undefined;
  /** The `fetch` that reaches the receiver at an address. */
  fetchTo(url: string): typeof fetch;
  /** The error with which the caller's subscriptions to a type of events end; undefined while they continue. */
  errorOf(name: string): SubscriptionError | undefined;
  /** The error of a subscription that its owner has ended on a page. */
  endedByOwner: SubscriptionError;
  /** Sets the alarm to the earliest time at which work is due. */
  arm(): Promise<void>;
}

export class WebHooks {
  readonly #options: WebHookOptions;
  readonly #table: HookTable;
  readonly #log: EventSource["log"];
  readonly #secrets: HookSecrets;
  #running: Promise<void> | undefined;
  #wake: (() => void) | undefined;
  /** For each subscription, the cursor up to which the log was searched for its events. */
  readonly #scanned = new Map<string, string>();
  readonly #limits = new MinuteLimits(MAX_A_MINUTE);

  constructor(options: WebHookOptions) {
    this.#options = options;
    this.#table = new HookTable(options.sql);
    this.#log = options.events.log;
    this.#secrets = new HookSecrets(options.encryptionKeys);
  }

  /** When the next message is due or a subscription expires, in milliseconds since the epoch; infinite without either. */
  nextAt(): number {
    return Math.min(this.#table.nextAt(), ...this.#table.subscriptions().map(({ expires_at }) => expires_at));
  }

  get types(): string[] {
    const now = Date.now();
    const live = this.#table.subscriptions().filter(({ expires_at, ended }) => expires_at > now && ended === null);
    return [...new Set(live.map(({ name }) => name))];
  }

  async subscribe(caller: Caller, request: HookRequest): Promise<Grant | Refusal> {
    const { name, url, secret, cursor, maxAgeMs, ttlMs } = request;
    const id = await idOf(caller, request);
    const now = Date.now();
    this.#expire(now);
    if (this.#isFull(id)) return exhausted("subscriptions");
    if (!this.#table.isVerified(url, now)) {
      if (!this.#limits.take("verifications")) return exhausted("verifications");
      const reason = await verify({ id, url, secret }, this.#options.fetchTo(url));
      if (reason !== undefined) return { refused: "CallbackEndpointError", data: { reason } };
      this.#table.verify(url, Date.now() + VERIFICATION_MS);
    }
    const sealed = await this.#secrets.seal(id, secret);
    const earlier = this.#table.get(id)?.secret;
    // A secret that cannot be decrypted signs no more.
    const isRotated = earlier !== undefined && (await this.#secrets.open(id, earlier).catch(() => secret)) !== secret;
    // Others may have come first while this one was checked. From here on nothing is awaited.
    if (this.#isFull(id)) return exhausted("subscriptions");
    // A subscription that has ended does not continue, also if its receiver has not heard of that yet.
    if (this.#table.get(id)?.ended != null) this.#remove(id);
    const known = this.#table.get(id);
    const begin = this.#log.begin(cursor, maxAgeMs, Date.now());
    const wantedLifeMs = ttlMs === undefined ? DEFAULT_LIFE_MS : (ttlMs ?? MAX_LIFE_MS);
    const expires_at = Date.now() + Math.min(MAX_LIFE_MS, Math.max(MIN_LIFE_MS, wantedLifeMs));
    const status = known && this.#statusOf(known);
    const truncated = known ? this.#table.takeGap(id) : begin.truncated;
    this.#table.put({
      id,
      name,
      url,
      secret: sealed,
      expires_at,
      active: 1,
      ended: null,
      filter: JSON.stringify(request.filter),
      caller: JSON.stringify(caller),
      old_secret: known ? (isRotated ? earlier : known.old_secret) : null,
      old_until: known ? (isRotated ? Date.now() + ROTATION_MS : known.old_until) : 0,
      position: known?.position ?? begin.cursor,
      last_delivery_at: known?.last_delivery_at ?? null,
      last_error: known?.last_error ?? null,
      failed_since: null,
      failures: 0,
    });
    if (known?.active === 0)
      this.#options.sql.all("UPDATE deliveries SET next_at = ? WHERE subscription = ?", Date.now(), id);
    return {
      id,
      refreshBefore: new Date(expires_at).toISOString(),
      cursor: this.#watermark(id, -1),
      truncated,
      ...(status && { deliveryStatus: status }),
    };
  }

  #isFull(id: string): boolean {
    return !this.#table.get(id) && this.#table.subscriptions().length >= MAX_SUBSCRIPTIONS;
  }

  async unsubscribe(caller: Caller, key: HookKey): Promise<object | Refusal> {
    const id = await idOf(caller, key);
    this.#expire(Date.now());
    if (!this.#table.get(id)) return { refused: "NotFound", data: { kind: "subscription" } };
    this.#remove(id);
    return {};
  }

  /** The subscriptions as their caller sees them. */
  list(): SubscriptionView[] {
    this.#expire(Date.now());
    const live = this.#table.subscriptions().filter(({ ended }) => ended === null);
    return live.map((subscription) => ({
      id: subscription.id,
      name: subscription.name,
      filter: JSON.parse(subscription.filter),
      host: new URL(subscription.url).host,
      until: new Date(subscription.expires_at).toISOString(),
      status: this.#statusOf(subscription),
    }));
  }

  /** Ends a subscription at its caller's request, and reports that to its receiver. */
  end(id: string): void {
    if (this.#table.get(id)?.ended === null) this.#end(id, this.#options.endedByOwner, Date.now());
  }

  /** Drops cached cursors after the log and the subscriptions were replaced. */
  load(): void {
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
    const attempts = new Map<string, Promise<void>>();
    const counts = new Map<string, number>();
    for (;;) {
      const now = Date.now();
      this.#expire(now);
      for (const subscription of this.#table.subscriptions()) this.#fill(subscription, now);
      // A slow receiver with many messages does not delay those of others.
      const load = ({ subscription, turn }: { subscription: string; turn: number }) =>
        turn + (counts.get(subscription) ?? 0);
      for (const delivery of this.#table.due(now, MAX_DELIVERIES_TO_ONE).sort((a, b) => load(a) - load(b))) {
        const { subscription, position, type } = delivery;
        const key = `${subscription} ${type} ${position}`;
        const count = counts.get(subscription) ?? 0;
        if (attempts.has(key) || count >= MAX_DELIVERIES_TO_ONE || attempts.size >= MAX_DELIVERIES) continue;
        if (!this.#limits.take("deliveries")) {
          this.#table.postpone(now, this.#limits.end);
          break;
        }
        counts.set(subscription, count + 1);
        const attempt = this.#attempt(delivery)
          .catch(() => {}) // The attempt is repeated later.
          .finally(() => {
            attempts.delete(key);
            counts.set(subscription, (counts.get(subscription) ?? 1) - 1);
          });
        attempts.set(key, attempt);
      }
      if (attempts.size === 0) return;
      const woken = Promise.withResolvers<void>();
      this.#wake = woken.resolve;
      await Promise.race([...attempts.values(), woken.promise]);
    }
  }

  /** Makes deliveries of logged events, as long as fewer than a bounded number wait. */
  #fill({ id, name, filter, position, ended }: Subscription, now: number): void {
    if (ended !== null) return;
    const error = this.#options.errorOf(name);
    if (error) {
      this.#end(id, error, now);
      return;
    }
    const limit = MAX_WAITING_MESSAGES - this.#table.outstanding(id);
    if (limit <= 0) return;
    const wanted = this.#options.events.jobFilter(JSON.parse(filter));
    const query = { ...wanted, name, cursor: this.#scanned.get(id) ?? position, limit };
    const page = this.#log.read(query, now);
    const isQuiet = page.events.length === 0 && !page.truncated;
    this.#scanned.set(id, page.cursor);
    if (isQuiet && page.hasMore) {
      this.#fill(this.#table.get(id) as Subscription, now);
      return;
    }
    if (isQuiet && !this.#log.isFar(position, now)) return;
    this.#options.sql.transaction(() => {
      if (page.truncated) this.#addGap(id, now);
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
    this.#table.schedule(delivery, delivery.attempts, Date.now() + ATTEMPT_MS);
    // Nothing is sent before the time of the next attempt and the alarm are stored.
    await this.#options.arm();
    const body = await this.#bodyOf(delivery, subscription);
    if (body === undefined) {
      // The log has dropped the event.
      this.#table.done(delivery);
      return this.#addGap(subscription.id, Date.now());
    }
    const { id, url } = subscription;
    const secrets = await this.#secrets.of(subscription).catch(() => undefined);
    // It is left alone until its client, who can see that, gives its secret again.
    if (!secrets) return this.#table.change(id, { active: 0 });
    const hook = { url, id: delivery.message_id, subscription: id, body, secrets };
    this.#note(delivery, await post(this.#options.fetchTo(url), hook));
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
      else if (status === 413) this.#addGap(id, now);
      if (delivery.type === "terminated") this.#remove(id);
      return;
    }
    const since = failed_since ?? now;
    const isSuspended = now - since >= MIN_FAILING_MS && failures + 1 >= MIN_FAILURES;
    const active = isSuspended ? 0 : 1;
    this.#table.change(id, { last_error: outcome.reason, failed_since: since, failures: failures + 1, active });
    const pause = RETRY_PAUSES_MS[delivery.attempts];
    if (pause !== undefined) {
      this.#table.schedule(delivery, delivery.attempts + 1, now + pause * (0.9 + Math.random() / 5));
    } else if (delivery.type === "gap") {
      this.#table.schedule(delivery, delivery.attempts, now + GAP_RETRY_PAUSE_MS);
    } else {
      this.#table.done(delivery);
      if (delivery.type === "terminated") this.#remove(id);
      else this.#addGap(id, now);
    }
  }

  async #bodyOf({ type, position }: Delivery, { id, caller, ended }: Subscription): Promise<string | undefined> {
    if (type === "terminated") return JSON.stringify({ type, error: JSON.parse(ended ?? "{}") });
    if (type === "gap") return JSON.stringify({ type, cursor: this.#watermark(id, -1) });
    const event = this.#log.at(position);
    if (!event) return undefined;
    const occurrence = await this.#options.events.occurrence(event, JSON.parse(caller));
    return JSON.stringify({ ...occurrence, cursor: this.#watermark(id, position) });
  }

  /** The cursor up to which all events are delivered or given up. The event at `position` (-1: none) counts as delivered. */
  #watermark(id: string, position: number): string {
    const log = this.#log;
    const first = this.#table.firstOpen(id, position);
    if (position >= 0) return log.cursorAt(first === undefined || first > position ? position : first - 1);
    return first === undefined
      ? (this.#scanned.get(id) ?? this.#table.get(id)?.position ?? log.cursorAt(0))
      : log.cursorAt(first - 1);
  }

  #addGap(subscription: string, now: number): void {
    const message_id = `msg_gap_${crypto.randomUUID()}`;
    this.#table.add({ subscription, position: 0, type: "gap", message_id, attempts: 0, next_at: now });
  }

  #end(subscription: string, error: SubscriptionError, now: number): void {
    this.#options.sql.all("DELETE FROM deliveries WHERE subscription = ?", subscription);
    this.#table.change(subscription, { ended: JSON.stringify(error), active: 1 });
    const message_id = `msg_terminated_${crypto.randomUUID()}`;
    this.#table.add({ subscription, position: 0, type: "terminated", message_id, attempts: 0, next_at: now });
  }

  #expire(now: number): void {
    for (const { id } of this.#options.sql.all("SELECT id FROM subscriptions WHERE expires_at <= ?", now))
      this.#remove(String(id));
  }

  /** Removes a subscription. One that is made again begins at its own cursor. */
  #remove(id: string): void {
    this.#table.remove(id);
    this.#scanned.delete(id);
  }

  #statusOf({ active, last_delivery_at, last_error, failed_since }: Subscription): SubscriptionView["status"] {
    const at = (time: number | null) => (time === null ? null : new Date(time).toISOString());
    return {
      active: active === 1,
      lastDeliveryAt: at(last_delivery_at),
      lastError: last_error,
      ...(failed_since !== null && { failedSince: at(failed_since) }),
      ...(this.#limits.isReached("deliveries") && {
        throttled: true,
        retryAfterMs: this.#limits.end - Date.now(),
      }),
    };
  }
}

const exhausted = (limit: "subscriptions" | "verifications"): Refusal => ({
  refused: "ResourceExhausted",
  data: { limit, max: limit === "subscriptions" ? MAX_SUBSCRIPTIONS : MAX_A_MINUTE.verifications },
});

/** The id of a subscription: the same for the same caller, address, type and filter. */
async function idOf({ key }: Caller, { url, name, filter }: HookKey): Promise<string> {
  const { jobNames = null, kinds = null, labels, schedule = [] } = filter;
  const text = JSON.stringify([key, url, name, jobNames, kinds, ...[schedule].flat(), ...(labels ? [{ labels }] : [])]);
  return `sub_${(await sha256Of(text)).slice(0, 24)}`;
}
