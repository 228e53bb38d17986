import { uniformInt } from "pure-rand/distribution/uniformInt";
import { xoroshiro128plus } from "pure-rand/generator/xoroshiro128plus";

/** Reproducible random choices. */
export class Random {
  readonly #generator;

  constructor(seed: number) {
    this.#generator = xoroshiro128plus(seed);
  }

  /** An integer from `min` to `max`, inclusive. */
  int(min: number, max: number): number {
    return uniformInt(this.#generator, min, max);
  }

  /** True with a probability of `percent` %. */
  chance(percent: number): boolean {
    return this.int(1, 100) <= percent;
  }

  pick<T>(items: readonly T[]): T {
    return items[this.int(0, items.length - 1)] as T;
  }

  /** One of the keys, by weight. */
  weighted<K extends string>(weights: Readonly<Record<K, number>>): K {
    const entries = Object.entries(weights) as [K, number][];
    let left = this.int(
      1,
      entries.reduce((sum, [, weight]) => sum + weight, 0),
    );
    for (const [key, weight] of entries) {
      left -= weight;
      if (left <= 0) return key;
    }
    throw new Error("no weights");
  }
}
