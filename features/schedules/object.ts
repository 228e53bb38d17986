/** The schedules of a caller: when each is due, in the caller's object, which fires them. */
import type {
  ObjectPart,
  ObjectRecord,
  PartHost,
  PartTables,
  ScheduleView,
  StartedJob,
} from "../../core/jobs/index.ts";
import { schedule } from "./schedule.ts";
import { type ScheduleOptions, Schedules } from "./schedules.ts";

/** How many schedules a caller may have. There are few, as each may fire every minute for years. */
const MAX_SCHEDULES = 100;

/** The pause after a failure to make the schedules of definitions, in milliseconds. */
const DEPLOY_RETRY_MS = 10_000;

/**
 * The caller's schedules and when each is due. Triggers keep the rows in step with the table of jobs. A schedule begins again if it
 * is made again after the retention has removed its name's ended promise.
 */
const SCHEDULES_TABLE = `CREATE TABLE schedules (
     id TEXT PRIMARY KEY, next_at REAL NOT NULL, after REAL NOT NULL, running TEXT, queued REAL, firings TEXT NOT NULL
   ) STRICT;
   CREATE INDEX schedules_next ON schedules (next_at);
   CREATE TRIGGER schedules_added AFTER INSERT ON jobs WHEN new.kind = 'schedule' AND new.state = 'pending' BEGIN
     INSERT OR IGNORE INTO schedules VALUES (new.id, 0, 0, NULL, NULL, '[]');
   END;
   CREATE TRIGGER schedules_again AFTER UPDATE OF state ON jobs
     WHEN new.kind = 'schedule' AND new.state = 'pending' AND old.state <> 'pending' BEGIN
     INSERT OR IGNORE INTO schedules VALUES (new.id, 0, 0, NULL, NULL, '[]');
   END;
   CREATE TRIGGER schedules_changed AFTER UPDATE OF state ON jobs WHEN new.kind = 'schedule' AND new.state <> 'pending' BEGIN
     DELETE FROM schedules WHERE id = new.id;
   END;
   CREATE TRIGGER schedules_removed AFTER DELETE ON jobs WHEN old.kind = 'schedule' BEGIN
     DELETE FROM schedules WHERE id = old.id;
   END;`;

/** The remote methods of the schedules in a caller's object. */
export interface ScheduleMethods {
  /** Makes the schedules of the deployment's definitions. For the object whose key is empty. */
  deploy(): Promise<void>;
}

interface SchedulePartOptions extends Omit<ScheduleOptions, "sql" | "record"> {
  host: Pick<PartHost, "sql" | "arm">;
  record: ObjectRecord;
}

export class SchedulePart implements ObjectPart {
  readonly name = "schedules";
  readonly tables: PartTables = { version: 1, statements: [SCHEDULES_TABLE], copied: ["schedules"] };
  readonly #options: SchedulePartOptions;
  readonly #schedules: Schedules;
  #deploying: Promise<void> | undefined;
  /** When the schedules of definitions are made again after a failure, in milliseconds since the epoch. */
  #deployAgainAt: number | undefined;

  constructor(options: SchedulePartOptions) {
    this.#options = options;
    this.#schedules = new Schedules({ ...options, sql: options.host.sql });
  }

  readonly methods = {
    deploy: async (): Promise<void> => {
      await this.#options.record.begin("");
      await this.#deploy();
    },
  };

  nextAt(): number {
    return this.#deployAgainAt ?? this.#schedules.nextAt();
  }

  async run(now: number): Promise<void> {
    const { record } = this.#options;
    // Until these schedules are made, none fires: its definition may be gone.
    if (record.isBegun && record.key === "") {
      try {
        await this.#deploy();
        this.#deployAgainAt = undefined;
      } catch {
        this.#deployAgainAt = now + DEPLOY_RETRY_MS;
        return;
      }
    }
    await this.#schedules.run();
  }

  refuse({ kind }: StartedJob): string | undefined {
    if (kind !== schedule.kind) return undefined;
    const isFull = this.#schedules.count(MAX_SCHEDULES) === MAX_SCHEDULES;
    return isFull ? `a caller may have ${MAX_SCHEDULES} schedules: end one with cancel_job` : undefined;
  }

  onStart({ kind }: StartedJob): void {
    if (kind === schedule.kind) void this.#options.host.arm();
  }

  /** The schedules as their caller sees them. */
  list(): ScheduleView[] {
    return this.#schedules.list();
  }

  /** Makes the schedules of the definitions, once per instance: a new deployment has new instances. */
  async #deploy(): Promise<void> {
    this.#deploying ??= this.#schedules.deploy().catch((error) => {
      this.#deploying = undefined;
      throw error;
    });
    await this.#deploying;
  }
}
