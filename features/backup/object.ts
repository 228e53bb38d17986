/** The part of a caller's object that a backup copies and restores. */
import type { CallerRow, CallerRowPage, CallerRowPosition, ObjectPart, PartHost } from "../../core/jobs/index.ts";
import { readRows, writeRows } from "./caller-rows.ts";

/** The remote methods by which the rows of a caller's object are read and written. */
export interface BackupMethods {
  readRows(...position: CallerRowPosition): Promise<CallerRowPage>;
  writeRows(rows: readonly CallerRow[]): Promise<void>;
  /** Removes everything that is stored for the caller. */
  clear(): Promise<void>;
}

export function backup(host: PartHost): ObjectPart {
  const methods: BackupMethods = {
    readRows: async (...position) => readRows(host, position),
    async writeRows(rows) {
      writeRows(host, rows, Date.now());
      for (const part of host.parts) part.load?.();
      await host.arm();
    },
    clear: async () => host.clear(),
  };
  return { name: "backup", methods: { ...methods } };
}
