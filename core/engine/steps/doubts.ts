/** What features doubt of the attempts of an execution, until its durable function has run again from its records. */
import type { Command, Commands } from "../replay/commands/commands.ts";
import type { Objection } from "../step-feature.ts";

export class Doubts {
  /** By the paths of the calls. */
  readonly #objections = new Map<string, Objection[]>();

  get isEmpty(): boolean {
    return this.#objections.size === 0;
  }

  get paths(): Iterable<string> {
    return this.#objections.keys();
  }

  add(path: string, objection: Objection): void {
    this.#objections.set(path, [...(this.#objections.get(path) ?? []), objection]);
  }

  /** Resolves all doubts by the calls of the repeated function; returns the first objection. */
  resolve(commands: Commands, lines: ReadonlyMap<string, string>, isComplete: boolean): string | undefined {
    const doubts = [...this.#objections];
    this.#objections.clear();
    for (const [path, objections] of doubts) {
      const fn = functionOf(commands.get(path));
      if (!fn) continue;
      for (const objection of objections) {
        const message = objection({ fn, line: lines.get(path) ?? "", isComplete });
        if (message !== undefined) return message;
      }
    }
    return undefined;
  }
}

function functionOf(command: Command | undefined): object | undefined {
  const work = command?.work;
  if (work?.do === "attempt") return work.fn;
  return work?.do === "check" ? work.check : undefined;
}
