/** The Events extension as a feature. What its methods answer is loaded when somebody asks for events. */
import type { EdgeFeature } from "../../core/feature.ts";
import type { EventQuery } from "../../core/jobs/index.ts";
import type { Method } from "../../core/tools/index.ts";
import type { EventReader, EventsOptions } from "./reader.ts";

/** The key under which the extension is declared. */
export const EVENTS = "io.modelcontextprotocol/events";

/** How long starts of callers without identity are recorded after somebody has asked for events, in milliseconds. */
const RECORDING_MS = 600_000;

/** The parameters of a request that reads events. */
export const QUERY_PARAMS = ["name", "arguments", "cursor", "maxAgeMs", "maxEvents"];

type Params = Record<string, unknown>;

/** A method that reads jobs, and costs one request. */
const readingMethod = (params: readonly string[], handle: NonNullable<Method["handle"]>): Method => ({
  form: { params },
  cost: () => ({ access: ["read"], weight: 1 }),
  handle,
});

export class Events {
  readonly #options: EventsOptions;
  #reader: Promise<EventReader> | undefined;
  /** When somebody last asked this isolate for events, in milliseconds since the epoch. */
  #requestedAt = 0;

  constructor(options: EventsOptions) {
    this.#options = options;
  }

  /** Whether somebody may want events of a job that starts now. */
  get areWanted(): boolean {
    return Date.now() - this.#requestedAt < RECORDING_MS;
  }

  /** What a request wants. @throws {ProtocolError} for one that is not valid */
  async queryOf(params: Params): Promise<EventQuery> {
    return (await this.#read()).queryOf(params);
  }

  /** Clients of the sketch that preceded the extension look for `events` at the top. */
  get feature(): EdgeFeature {
    return {
      name: "events",
      methods: this.#methods,
      capabilities: () => ({ events: {}, extensions: { [EVENTS]: {} } }),
    };
  }

  /** @throws {ProtocolError} for a request that is not valid */
  readonly #methods: Readonly<Record<string, Method>> = {
    "events/list": readingMethod(["cursor"], async () => ({ events: (await this.#read()).types })),
    "events/poll": readingMethod(QUERY_PARAMS, async (params, { scope }) => {
      this.#requestedAt = Date.now();
      return (await this.#read()).poll(params, scope);
    }),
    "events/stream": {
      form: { params: QUERY_PARAMS },
      cost: () => ({ access: ["read"], streams: true }),
      // Here the SDK judges only the request: the stream itself does not pass through it.
      handle: (params) => this.#check(params),
      answer: async ({ message: { id, params }, plain, request, scope, respond, sdk }) => {
        const judged = plain ? await respond(() => this.#check(params)) : await sdk();
        // An error is the whole answer; otherwise the stream follows.
        if (!judged || !/"result":/.test(await judged.clone().text())) return judged;
        this.#requestedAt = Date.now();
        return (await this.#read()).stream(id, params, scope, request.signal);
      },
    },
  };

  #read(): Promise<EventReader> {
    this.#reader ??= import("./reader.ts").then(({ EventReader }) => new EventReader(this.#options));
    return this.#reader;
  }

  /** An empty result for a request that a stream may answer. */
  async #check(params: Params): Promise<Params> {
    await this.queryOf(params);
    return {};
  }
}
