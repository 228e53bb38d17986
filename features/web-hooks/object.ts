/** The web hooks of a caller: its subscriptions in the caller's object, and their delivery. */
import type {
  EventSource,
  ObjectPart,
  ObjectRecord,
  PartHost,
  PartTables,
  SubscriptionView,
} from "../../core/jobs/index.ts";
import { pause } from "../../core/resonate/index.ts";
import type { EventErrorCodes } from "../../core/tools/index.ts";
import { callbackProblem } from "./address.ts";
import { hookTables } from "./hook-table.ts";
import type { SubscriptionError, WebHookMethods } from "./requests.ts";
import { SubscriptionRefresher } from "./subscription-refresher.ts";
import { WebHooks } from "./web-hooks.ts";

/** How long an alarm waits for deliveries, in milliseconds. Slower ones continue after it. */
const DELIVERY_WAIT_MS = 5_000;

interface WebHookPartOptions {
  host: Pick<PartHost, "sql" | "arm">;
  record: ObjectRecord;
  events: EventSource;
  codes: EventErrorCodes;
  encryptionKeys: string | undefined;
  /** Whether web hooks may be sent to this machine. */
  allowsLoopback: boolean;
  /** Whether the Resonate server is on this machine or its network. */
  isServerLocal: boolean;
  /** Has the ends of jobs noticed until a time; `andFeeds`: also what they report. */
  follow(until: number, andFeeds: boolean): void;
  /** The `fetch` for the receiver at an address. */
  fetchTo(url: string): typeof fetch;
  /** Why the caller is not admitted, as what follows "the caller"; undefined if it is. */
  refusal(): Promise<string | undefined>;
  /** The names of the events that the deployment's definitions add. */
  ownEvents: readonly string[];
}

export class WebHookPart implements ObjectPart {
  readonly name = "web-hooks";
  readonly tables: PartTables;
  readonly #options: WebHookPartOptions;
  readonly #hooks: WebHooks;
  readonly #refresher: SubscriptionRefresher;
  /** Why the caller is not admitted, as it was last known. */
  #refusal: string | undefined;

  constructor(options: WebHookPartOptions) {
    const { host, record, events, encryptionKeys, isServerLocal } = options;
    this.#options = options;
    this.tables = hookTables(host.sql, events.log);
    this.#hooks = new WebHooks({
      sql: host.sql,
      events,
      encryptionKeys,
      fetchTo: (url) => options.fetchTo(url),
      errorOf: (name) => this.#errorOf(name),
      endedByOwner: this.#forbidden("its owner has ended it on a page"),
      arm: () => host.arm(),
    });
    this.#refresher = new SubscriptionRefresher({
      record,
      follow: (until, andFeeds) => options.follow(until, andFeeds),
      noteFeed: (job) => events.noteFeed(job),
      types: () => this.#hooks.types,
      isServerLocal,
    });
  }

  readonly methods = {
    subscribe: (...args: Parameters<WebHookMethods["subscribe"]>) => this.#subscribe(...args),
    unsubscribe: (...args: Parameters<WebHookMethods["unsubscribe"]>) => this.#unsubscribe(...args),
  };

  /** The types of events that somebody is subscribed to. */
  get types(): readonly string[] {
    return this.#hooks.types;
  }

  load(): void {
    this.#hooks.load();
    this.#refresher.load();
  }

  nextAt(): number {
    return Math.min(this.#refresher.nextAt(), this.#hooks.nextAt());
  }

  async run(now: number): Promise<void> {
    await this.#refresher.run(now);
    await Promise.race([this.#runHooks(), pause(DELIVERY_WAIT_MS)]);
  }

  onStart(): void {
    if (this.#refresher.onStart()) void this.#options.host.arm();
  }

  /** Delivers in the background what the log has. */
  deliver(): void {
    if (this.#hooks.types.length > 0) this.#deliver();
  }

  /** The subscriptions as their caller sees them. */
  list(): SubscriptionView[] {
    return this.#hooks.list();
  }

  /** Ends a subscription at its caller's request. */
  end(id: string): void {
    this.#hooks.end(id);
    this.#deliver();
  }

  #deliver(): void {
    const over = this.#runHooks().then(() => this.#options.host.arm());
    over.catch(() => {}); // The alarm tries again.
  }

  async #runHooks(): Promise<void> {
    this.#refusal = await this.#options.refusal();
    await this.#hooks.run();
  }

  async #subscribe(...[caller, request]: Parameters<WebHookMethods["subscribe"]>) {
    const { record, host, allowsLoopback } = this.#options;
    const problem = callbackProblem(request.url, allowsLoopback);
    if (problem !== undefined) return { refused: "InvalidUrl" as const, data: { problem } };
    await record.begin(caller.key);
    const granted = await this.#hooks.subscribe(caller, request);
    if ("refused" in granted) return granted;
    this.#refresher.begin();
    this.#deliver();
    await host.arm();
    return granted;
  }

  async #unsubscribe(...[caller, key]: Parameters<WebHookMethods["unsubscribe"]>) {
    await this.#options.record.begin(caller.key);
    return this.#hooks.unsubscribe(caller, key);
  }

  /** Why the caller's subscriptions to a type of events must end; undefined while they continue. */
  #errorOf(name: string): SubscriptionError | undefined {
    const { codes, ownEvents } = this.#options;
    if (this.#refusal !== undefined) return this.#forbidden(`the caller ${this.#refusal}`);
    if (name.startsWith("job.") || ownEvents.includes(name)) return undefined;
    return { code: codes.NotFound, message: "NotFound", data: { kind: "event" } };
  }

  #forbidden(reason: string): SubscriptionError {
    return { code: this.#options.codes.Forbidden, message: "Forbidden", data: { reason } };
  }
}
