/** Reads the resources that a wrapped server's results refer to. Each read is a job, because only workers reach the server. */

import type { ResourceReader } from "../core/author/tool.ts";
import { hashed, type Job } from "../core/definitions/job.ts";
import type { DurablePromise } from "../core/jobs/remote-store.ts";
import { startJob } from "../core/jobs/starting/start.ts";
import { awaitSettled } from "../core/jobs/waiting/waiting.ts";
import { partsIn } from "../core/store/parts.ts";
import { MOST_WHOLE, wholeResult } from "../core/tools/byte-range.ts";
import { protocolErrorIn } from "../core/tools/content.ts";
import { ErrorCode, ProtocolError } from "../core/tools/mcp.ts";
import { uriOf } from "../core/tools/results.ts";
import { type CallArgs, READ } from "./call-job.ts";
import { APP_URI } from "./listing.ts";

/** How long the result of a read answers further reads, in milliseconds: a caller that gave up waiting finds it. */
const FRESH_FOR = 10_000;
/** How long a request waits for its read, in milliseconds. */
const PATIENCE = 45_000;

/** How many of a caller's last calls are searched for the name of a resource, and how many are read at once. */
const LOOKED_AT = 50;
const PAGE = 10;

interface ReaderOptions {
  name: string;
  /** The jobs of its calls; the first one reads. */
  jobs: readonly [Job<CallArgs>, ...Job<CallArgs>[]];
  isOffered: boolean;
  /** Whether its apps may be read. */
  apps?: boolean | undefined;
}

/** Reads a server's resources on behalf of callers. */
export function resourceReader(options: ReaderOptions): ResourceReader {
  return {
    read: readerOf(options),
    async named(uri, { store, signal }) {
      const quoted = JSON.stringify(uri);
      const lastOf = async ({ kind }: Job<CallArgs>) => {
        let looked = 0;
        for await (const { job } of store.started({ kind, limit: PAGE }, signal)) {
          const value = job && (job.promise?.value ?? (await store.get(job.name, signal))?.value);
          const text = partsIn(value)?.text ?? JSON.stringify(value ?? null);
          if (job && text.includes(quoted)) return job.startedAt;
          looked += 1;
          if (looked === LOOKED_AT) break;
        }
        return 0;
      };
      return Math.max(...(await Promise.all(options.jobs.map(lastOf))));
    },
  };
}

function readerOf({ name, jobs: [job], isOffered, apps = false }: ReaderOptions): ResourceReader["read"] {
  return async (uri, { store, now, until, signal }) => {
    if (!isOffered) throw new ProtocolError(ErrorCode.InvalidParams, `${name} has no resources`, { uri });
    if (!apps && uri.startsWith(APP_URI)) {
      throw new ProtocolError(ErrorCode.InvalidParams, `${name}: its apps are not shown here`, { uri });
    }
    const wanted = { tool: READ, arguments: { uri }, key: await hashed(uri), once: false, fresh_for: FRESH_FOR };
    let read: DurablePromise = await startJob(store, job, wanted, now);
    if (read.state === "pending") {
      await awaitSettled(store, [read.name], {
        timeout: Math.max(0, Math.min(PATIENCE, until - now)),
        signal,
        onSettled: (_name, settled) => {
          read = settled ?? read;
        },
      });
    }
    if (read.state === "pending") {
      throw new ProtocolError(ErrorCode.InternalError, `${name} takes long; the read goes on: repeat the request.`);
    }
    const parts = partsIn(read.value);
    if (parts && parts.characters > MOST_WHOLE) {
      const words = `${name} has ${parts.characters} characters of it, and up to ${MOST_WHOLE} are in one answer: it is read in parts, from ${uriOf(read.name)}?offset=0 on.`;
      throw new ProtocolError(ErrorCode.InvalidParams, words, { uri });
    }
    const value = parts ? await wholeResult(store, read.id, parts, signal) : read.value;
    const failure = protocolErrorIn(value);
    if (failure) throw new ProtocolError(failure.code, `${name}: ${failure.message}`, failure.data ?? { uri });
    const { contents, content } = { ...(value as { contents?: unknown; content?: [{ text?: string }] }) };
    if (Array.isArray(contents)) return { contents };
    const why = read.value instanceof Error ? read.value.message : content?.[0]?.text;
    throw new ProtocolError(ErrorCode.InvalidParams, `${name}: ${why ?? "it was not read"}`, { uri });
  };
}
