/** Bounds how much of jobs one request reads, since each may have arguments and a result of a megabyte. */

/** How many characters of stored parameters and values one page reads of a list that continues. */
const PAGE_CHARACTERS = 4_000_000;

/** The size for which there is room in each read while no size is known: that of a large job, in characters. */
const LARGE_JOB_CHARACTERS = 1_000_000;

/** How many reads run at once at most. */
const MAX_CONCURRENT_READS = 16;

/** What one request may still read. */
export class ReadRoom {
  #left: number;
  #largest = 0;
  /** How many reads may run at once, as far as sizes are known: each small job allows one more. */
  #concurrency: number;

  constructor(characters = PAGE_CHARACTERS) {
    this.#left = characters;
    this.#concurrency = Math.floor(characters / LARGE_JOB_CHARACTERS);
  }

  get isFull(): boolean {
    return this.#left <= 0;
  }

  /**
   * Reads items in their order, several at once, as long as there is room for as many of the largest so far. Returns what was found
   * of those at the beginning that the room was enough for; of all with `isBinding: false`, one after another once the room is full.
   * `charactersOf`: the stored size of what was found.
   * `isBounded`: whether all may be read at once, since the server leaves out long values.
   */
  async read<Item, Found>(
    items: readonly Item[],
    read: (item: Item) => Promise<Found>,
    charactersOf: (found: Found) => number,
    { isBinding = true, isBounded = () => false }: { isBinding?: boolean; isBounded?: () => boolean } = {},
  ): Promise<Found[]> {
    const found: Found[] = [];
    const underWay = new Set<Promise<void>>();
    let started = 0;
    const readAt = async (index: number) => {
      const each = await read(items[index] as Item);
      found[index] = each;
      this.#take(charactersOf(each));
    };
    const mayStart = () =>
      started < items.length &&
      underWay.size < (isBounded() ? items.length : this.#maxUnderWay()) &&
      !(isBinding && this.isFull);
    for (;;) {
      while (mayStart()) {
        // One that has failed stays: the next race ends with its error.
        const reading: Promise<void> = readAt(started).then(() => void underWay.delete(reading));
        underWay.add(reading);
        started += 1;
      }
      if (underWay.size === 0) return found;
      await Promise.race(underWay);
    }
  }

  #take(characters: number): void {
    this.#left -= characters;
    this.#largest = Math.max(this.#largest, characters);
    this.#concurrency += 1;
  }

  #maxUnderWay(): number {
    const withRoom = Math.floor(this.#left / Math.max(1, this.#largest));
    return Math.max(1, Math.min(MAX_CONCURRENT_READS, this.#concurrency, withRoom));
  }
}
