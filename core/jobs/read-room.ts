/** Bounds how much of jobs one request reads, since each may have arguments and a result of a megabyte. */

/** How many characters of stored parameters and values one page reads of a list that continues. */
const PAGE_CHARACTERS = 4_000_000;

/** How many reads run at once: at first, while no size is known, and at most. */
const CONCURRENT_READS = { first: 4, max: 16 };

/** What one request may still read. */
export class ReadRoom {
  #left: number;
  #largest = 1;
  #concurrency = CONCURRENT_READS.first;

  constructor(characters = PAGE_CHARACTERS) {
    this.#left = characters;
  }

  get isFull(): boolean {
    return this.#left <= 0;
  }

  /**
   * Reads items in their order, a few at a time. Returns what was found of those at the beginning that the room was enough for; of
   * all with `isBinding: false`, one after another once the room is full. `charactersOf`: the stored size of what was found.
   * `isBounded`: whether all may be read at once, since the server leaves out long values.
   */
  async read<Item, Found>(
    items: readonly Item[],
    read: (item: Item) => Promise<Found>,
    charactersOf: (found: Found) => number,
    { isBinding = true, isBounded = () => false }: { isBinding?: boolean; isBounded?: () => boolean } = {},
  ): Promise<Found[]> {
    const found: Found[] = [];
    while (found.length < items.length && !(isBinding && this.isFull)) {
      const count = isBounded() ? items.length : this.#concurrency;
      const batch = await Promise.all(items.slice(found.length, found.length + count).map(read));
      found.push(...batch);
      for (const each of batch) {
        const characters = charactersOf(each);
        this.#left -= characters;
        this.#largest = Math.max(this.#largest, characters);
      }
      this.#concurrency = Math.max(1, Math.min(CONCURRENT_READS.max, Math.floor(this.#left / this.#largest)));
    }
    return found;
  }
}
