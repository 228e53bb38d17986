/**
 * `RESONATE_HOST=object`: a stack without a server of its own is one account then. Edge and Resonate object are one workerd, as
 * `wrangler.toml` configures it, and workers reach the object as those elsewhere do: over the edge, with a token.
 *
 * With `RESONATE_RUNNER=1` as well there are no workers: the runner, in the same workerd, takes the jobs.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { newToken } from "../../cli/static-token.ts";
import { freePort } from "../../testing/stack/port.ts";

export const isAccount = process.env.RESONATE_HOST === "object" && process.env.RESONATE_URL === undefined;

/** Whether jobs run in the account's Workers, and there is no process of a worker. */
export const isRunner = isAccount && process.env.RESONATE_RUNNER === "1";

/** How long a runner that is killed keeps its jobs, in milliseconds. */
export const RUNNER_LEASE = 15_000;

export interface Account extends AsyncDisposable {
  readonly port: number;
  /** Where the objects keep what they store. */
  readonly data: string;
  /** Where workers find the object, and with what. */
  readonly url: string;
  readonly token: string;
  /** What tells the edge of it. */
  readonly bindings: Record<string, string>;
}

/** An account, where jobs are run or not; `data` is a folder to keep it in. */
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
      // Where there are workers, the jobs are theirs also while none of them is connected.
      ...(!(isRunner && runs) && { RUNNER: "" }),
    },
    async [Symbol.asyncDispose]() {
      if (data === undefined) await rm(folder, { recursive: true, force: true });
    },
  };
}
