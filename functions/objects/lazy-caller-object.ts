import { loadLazy } from "../load-lazy.ts";
import type { CallerMethods } from "./callers.ts";
import { DurableObject } from "./durable-object.ts";

/** All methods of the loaded object, for the loop below; the type makes the list complete. */
const METHODS: Readonly<Record<keyof CallerMethods | "alarm", true>> = {
  alarm: true,
  deploy: true,
  clear: true,
  events: true,
  forget: true,
  forgetRoom: true,
  heard: true,
  isBlocked: true,
  list: true,
  listRoom: true,
  note: true,
  operate: true,
  readRooms: true,
  reserve: true,
  restore: true,
  rows: true,
  seen: true,
  stored: true,
  subscribe: true,
  unsubscribe: true,
  writeRooms: true,
};

/**
 * The record of one caller of a deployment: its quota and its list of jobs, in the SQL storage of a Durable Object. A Worker's
 * entry exports it beside its default export, and `wrangler.toml` binds it as `CALLER`. Its code is loaded when an object is
 * first used, so it does not slow the start of the edge.
 *
 * @example
 * const entry = { CallerObject, default: createEdge({ name: "my-server", version: "1.0.0", tools: [waitForSite] }) };
 */
export class CallerObject extends DurableObject {
  readonly loaded: Promise<CallerMethods & { alarm(): Promise<void> }>;

  constructor(state: object, env: object) {
    super(state, env);
    this.loaded = loadLazy().then(({ CallerObject }) => new CallerObject(state as never, env));
    this.loaded.catch(() => {}); // Each call reports the failure.
  }
}

type AnyMethod = (...args: unknown[]) => unknown;

for (const name of Object.keys(METHODS) as (keyof typeof METHODS)[]) {
  Object.defineProperty(CallerObject.prototype, name, {
    async value(this: CallerObject, ...args: unknown[]) {
      const loaded = await this.loaded;
      return (loaded[name] as AnyMethod).apply(loaded, args);
    },
  });
}
