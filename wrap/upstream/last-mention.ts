/** Finds the server whose results named a resource last. */

import type { Job } from "../../core/author/index.ts";
import { listJobs } from "../../core/jobs/index.ts";
import { partsIn } from "../../core/resonate/index.ts";
import type { CallContext } from "../../core/tools/index.ts";
import type { CallArgs } from "../call-job.ts";
import type { Server } from "./entries.ts";

/** The maximum number of a caller's last calls that are searched for the address of a resource. */
const MAX_SEARCHED_CALLS = 50;
/** How many calls are read at once. */
const PAGE_SIZE = 10;

/** How many characters after an occurrence decide whether the address ends there. */
const LOOK_AHEAD_CHARACTERS = 20;
/** The end of an address in a text, after marks that belong to the sentence. */
const ADDRESS_END = /^[.,:;!?'*)\]]*([^!-~]|["<>\\^`{|}])/;

/** The server whose result has named the resource in the caller's last such call; undefined if there is none. */
export async function lastToName(
  servers: readonly Server[],
  uri: string,
  context: CallContext,
): Promise<Server | undefined> {
  const times = await Promise.all(servers.map((server) => lastMention(server, uri, context)));
  return servers[times.indexOf(Math.max(...times.filter((at) => at > 0)))];
}

/** When the caller began its last call whose result names the resource, in milliseconds since the epoch; 0 if there is none. */
async function lastMention({ jobs }: Server, uri: string, { store, signal }: CallContext): Promise<number> {
  const lastOf = async ({ kind }: Job<CallArgs>) => {
    let callCount = 0;
    for await (const { job } of listJobs(store, { kind, limit: PAGE_SIZE }, signal)) {
      const value = job && (job.promise?.value ?? (await store.get(job.name, signal))?.value);
      const text = partsIn(value)?.text ?? JSON.stringify(value ?? null);
      if (job && mentions(text, uri)) return job.startedAt;
      callCount += 1;
      if (callCount === MAX_SEARCHED_CALLS) break;
    }
    return 0;
  };
  return Math.max(...(await Promise.all(jobs.map(lastOf))));
}

/** Whether a JSON text has the address in one of its strings, and not only as a part of a longer address. */
function mentions(json: string, uri: string): boolean {
  const address = JSON.stringify(uri).slice(1, -1);
  for (let at = json.indexOf(address); at >= 0 && address !== ""; at = json.indexOf(address, at + address.length)) {
    const end = at + address.length;
    const isStart = !/[A-Za-z0-9+.-]/.test(json[at - 1] ?? "") || /\\[bfnrt]/.test(json.slice(at - 2, at));
    if (isStart && ADDRESS_END.test(json.slice(end, end + LOOK_AHEAD_CHARACTERS))) return true;
  }
  return false;
}
