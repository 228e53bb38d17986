import type { ListenerView } from "../../core/jobs/index.ts";

/** The largest number of listeners that an object remembers. */
const MAX_LISTENERS = 50;

/** Who has lately polled or streamed events. Only in memory, as a client that still listens soon asks again. */
export class Listeners {
  readonly #until = new Map<string, number>();

  note({ name, filter }: ListenerView, until: number): void {
    const key = JSON.stringify({ name, filter });
    this.#until.delete(key);
    this.#until.set(key, until);
    const [oldest] = this.#until.keys();
    if (this.#until.size > MAX_LISTENERS && oldest !== undefined) this.#until.delete(oldest);
  }

  list(now: number): ListenerView[] {
    return [...this.#until].flatMap(([key, until]) => (until > now ? [JSON.parse(key) as ListenerView] : []));
  }
}
