/**
 * With `RESONATE_HOST=object`, a stack without a separate server is one account: edge and Resonate object are one workerd, as
 * `wrangler.toml` configures it, and workers reach the object like external ones, through the edge with a token.
 *
 * With `RESONATE_RUNNER=1` too, there are no workers: the runner, in the same workerd, takes the jobs.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { newToken } from "../../cli/static-token.ts";
import { freePort } from "../../testing/stack/port.ts";

export const isAccount = process.env.RESONATE_HOST === "object" && process.env.RESONATE_URL === undefined;

/** Whether jobs run in the account's Workers, without a worker process. */
export const isRunner = isAccount && process.env.RESONATE_RUNNER === "1";

/** The time for which a killed runner keeps its jobs, in milliseconds. */
export const RUNNER_LEASE = 15_000;

export interface Account extends AsyncDisposable {
  readonly port: number;
  /** The folder in which the objects store their data. */
  readonly data: string;
  /** The URL and the token with which workers reach the object. */
  readonly url: string;
  readonly token: string;
  /** The bindings with which the edge serves the object to workers. */
  readonly bindings: Record<string, string>;
}

/** Prepares an account. `runs`: whether anything runs its jobs; `data`: a folder for its state, if it is to be kept. */
export async function openAccount({ runs, data }: { runs: boolean; data?: string | undefined }): Promise<Account> {
  const port = await freePort();
  const folder = data ?? (await mkdtemp(join(tmpdir(), "account-")));
  const { token, sha256 } = newToken();
  return {
    port,
    data: folder,
    url: `http://127.0.0.1:${port}/resonate`,
    token,
    bindings: {
      RESONATE_PUBLIC: "1",
      RESONATE_TOKENS: JSON.stringify([{ name: "workers", sha256 }]),
      // If there are workers, the jobs are theirs even while none of them is connected.
      ...(!(isRunner && runs) && { RUNNER: "" }),
    },
    async [Symbol.asyncDispose]() {
      if (data === undefined) await rm(folder, { recursive: true, force: true });
    },
  };
}
