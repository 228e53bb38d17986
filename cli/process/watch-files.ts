import { type FSWatcher, readdirSync, statSync, watch } from "node:fs";
import { join } from "node:path";

/** How long changes are collected, in milliseconds: an editor may write several files, or one file in several steps. */
const SETTLE = 40;

/**
 * Calls `onChange` with the absolute paths of changed files below `root`. It skips `node_modules`, names that begin with
 * a dot, and the folders in `ignored`. Calls `onLimit` with the first error if the system watches no more folders.
 *
 * It does not use the option `recursive` of `fs.watch`, which on Linux also watches `node_modules`.
 */
export function watchFiles(
  root: string,
  ignored: readonly string[],
  onChange: (paths: ReadonlySet<string>) => void,
  onLimit: (error: Error) => void,
): { close(): void } {
  const watchers = new Map<string, FSWatcher>();
  let changed = new Set<string>();
  let timer: NodeJS.Timeout | undefined;
  let isLimited = false;

  const note = (path: string) => {
    changed.add(path);
    timer ??= setTimeout(() => {
      timer = undefined;
      const paths = changed;
      changed = new Set();
      onChange(paths);
    }, SETTLE);
  };

  const add = (folder: string, isNew: boolean) => {
    if (watchers.has(folder) || ignored.includes(folder)) return;
    let entries: ReturnType<typeof list>;
    try {
      const watcher = watch(folder, (_event, name) => {
        if (name === null || isLeftOut(name)) return;
        const path = join(folder, name);
        note(path);
        const info = statSync(path, { throwIfNoEntry: false });
        // The files of a new folder may have been written before the folder was watched.
        if (info?.isDirectory()) add(path, true);
        if (!info) forget(path);
      });
      watcher.on("error", () => forget(folder));
      watchers.set(folder, watcher);
      entries = list(folder);
    } catch (error) {
      const isLimit = /^(ENOSPC|EMFILE)$/.test((error as NodeJS.ErrnoException).code ?? "");
      if (isLimit && !isLimited) onLimit(error as Error);
      isLimited ||= isLimit;
      return forget(folder); // Else the folder has been removed.
    }
    for (const entry of entries) {
      if (entry.isDirectory()) add(join(folder, entry.name), isNew);
      else if (isNew) note(join(folder, entry.name));
    }
  };

  const forget = (folder: string) => {
    watchers.get(folder)?.close();
    watchers.delete(folder);
  };

  add(root, false);
  return {
    close() {
      clearTimeout(timer);
      for (const folder of [...watchers.keys()]) forget(folder);
    },
  };
}

const isLeftOut = (name: string) => name.startsWith(".") || name === "node_modules";

const list = (folder: string) => readdirSync(folder, { withFileTypes: true }).filter(({ name }) => !isLeftOut(name));
