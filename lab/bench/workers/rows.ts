/** The product with objects that count what the platform charges for: rows read and written, requests to them, and alarms. */
import { CallerObject as OwnCaller } from "../../../functions/edge.ts";
import product from "../../../functions/index.ts";
import { ResonateObject as OwnResonate } from "../../../functions/objects.ts";

export { Listener } from "../../../functions/edge.ts";
export { RunnerObject } from "../../../functions/objects.ts";

interface Cursor {
  rowsRead: number;
  rowsWritten: number;
}
interface State {
  storage: { sql: { exec(...args: unknown[]): Cursor } };
}

/** All objects of the process share these counts. */
const cursors: Cursor[] = [];
const charged = { requests: 0, read: 0, written: 0 };

/** Counts the rows of a storage. A cursor knows its rows only after it was read. */
function counted(state: State): void {
  const { sql } = state.storage;
  const exec = sql.exec.bind(sql);
  sql.exec = (...args) => {
    const cursor = exec(...args);
    cursors.push(cursor);
    return cursor;
  };
}

export class CallerObject extends OwnCaller {
  constructor(state: object, env: object) {
    counted(state as State);
    super(state, env);
  }

  override call(method: string, args: readonly unknown[]): Promise<unknown> {
    charged.requests += 1;
    return super.call(method, args);
  }

  override alarm(): Promise<void> {
    charged.requests += 1;
    return super.alarm();
  }
}

export class ResonateObject extends OwnResonate {
  constructor(state: object, env: object) {
    counted(state as State);
    super(state, env);
  }

  override fetch(request: Request): Promise<Response> {
    charged.requests += 1;
    return super.fetch(request);
  }

  override alarm(): Promise<void> {
    charged.requests += 1;
    return super.alarm();
  }
}

export default {
  async fetch(request: Request, ...rest: [object, never]): Promise<Response> {
    if (new URL(request.url).pathname !== "/bench/rows") return product.fetch(request, ...rest);
    for (const { rowsRead, rowsWritten } of cursors.splice(0)) {
      charged.read += rowsRead;
      charged.written += rowsWritten;
    }
    return Response.json(charged);
  },
};
