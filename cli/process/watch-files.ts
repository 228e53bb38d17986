import { type FSWatcher, readdirSync, statSync, watch } from "node:fs";
import { join } from "node:path";

/** How long changes are collected: an editor may write several files, or one file in several steps. */
const COLLECTION_MS = 40;

interface WatchOptions {
  /** Absolute paths of folders that are not watched. */
  ignoredFolders: readonly string[];
  /** Receives the absolute paths of changed files. */
  onChange(paths: ReadonlySet<string>): void;
  /** Receives the first error if the system watches no more folders. */
  onLimit(error: Error): void;
}

/**
 * Watches the files below `root`. It skips `node_modules`, names that begin with a dot, and the ignored folders.
 *
 * It does not use the option `recursive` of `fs.watch`, which on Linux also watches `node_modules`.
 */
export class FileWatcher {
  readonly #options: WatchOptions;
  readonly #watchers = new Map<string, FSWatcher>();
  #changes = new Set<string>();
  #timer: NodeJS.Timeout | undefined;
  #isLimited = false;

  constructor(root: string, options: WatchOptions) {
    this.#options = options;
    this.#add(root, false);
  }

  close(): void {
    clearTimeout(this.#timer);
    for (const folder of [...this.#watchers.keys()]) this.#remove(folder);
  }

  #add(folder: string, isNew: boolean): void {
    if (this.#watchers.has(folder) || this.#options.ignoredFolders.includes(folder)) return;
    let entries: ReturnType<typeof entriesOf>;
    try {
      const watcher = watch(folder, (_event, name) => this.#onEvent(folder, name));
      watcher.on("error", () => this.#remove(folder));
      this.#watchers.set(folder, watcher);
      entries = entriesOf(folder);
    } catch (error) {
      this.#checkLimit(error as NodeJS.ErrnoException);
      this.#remove(folder); // Else the folder has been removed.
      return;
    }
    for (const entry of entries) {
      if (entry.isDirectory()) this.#add(join(folder, entry.name), isNew);
      else if (isNew) this.#note(join(folder, entry.name));
    }
  }

  #onEvent(folder: string, name: string | null): void {
    if (name === null || isIgnored(name)) return;
    const path = join(folder, name);
    this.#note(path);
    const info = statSync(path, { throwIfNoEntry: false });
    // The files of a new folder may have been written before the folder was watched.
    if (info?.isDirectory()) this.#add(path, true);
    if (!info) this.#remove(path);
  }

  #note(path: string): void {
    this.#changes.add(path);
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      const paths = this.#changes;
      this.#changes = new Set();
      this.#options.onChange(paths);
    }, COLLECTION_MS);
  }

  #checkLimit(error: NodeJS.ErrnoException): void {
    if (this.#isLimited || !/^(ENOSPC|EMFILE)$/.test(error.code ?? "")) return;
    this.#isLimited = true;
    this.#options.onLimit(error);
  }

  #remove(folder: string): void {
    this.#watchers.get(folder)?.close();
    this.#watchers.delete(folder);
  }
}

const isIgnored = (name: string) => name.startsWith(".") || name === "node_modules";

const entriesOf = (folder: string) =>
  readdirSync(folder, { withFileTypes: true }).filter(({ name }) => !isIgnored(name));
