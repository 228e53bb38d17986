import type { Implementation } from "../core/author/implement.ts";
import { localId, splitGeneration, splitKey } from "../core/store/ids.ts";

/** Reads which job a promise id names. */
export class JobNames {
  readonly #namespace: string;
  readonly #implementations: readonly Implementation[];

  constructor(namespace: string, implementations: readonly Implementation[]) {
    this.#namespace = namespace;
    this.#implementations = implementations;
  }

  /** The job's name: its promise id without the deployment's namespace, and with the key of its caller. */
  nameOf = (id: string): string => localId(id, this.#namespace);

  /** The kind of job, for metrics; `unknown` for a kind that is not implemented here. */
  kindOf(id: string): string {
    const { base } = splitGeneration(splitKey(this.nameOf(id)).name);
    return this.#implementations.find(({ job }) => job.owns(base))?.job.kind ?? "unknown";
  }
}
