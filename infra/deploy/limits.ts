/** What one request may take before Cloudflare ends it: the platform's own guard, which the paid plan has. */
import { rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { resolveModule } from "../launcher/package.ts";

/**
 * Several times what the largest request that is accepted needs. A job that runs in the account's own Workers has as much
 * until its next suspension.
 */
const LIMITS = { cpu_ms: 5_000, subrequests: 10_000 };

export interface Limited extends AsyncDisposable {
  /** What wrangler is told. */
  readonly args: readonly string[];
}

/**
 * The project's configuration with limits, where it has none, for as long as it is deployed. It lies beside the project's
 * own, whose paths are then its, too. The free plan refuses it.
 */
export async function withLimits(config: string, isPaid: boolean): Promise<Limited> {
  const none = { args: [], async [Symbol.asyncDispose]() {} };
  if (!isPaid) return none;
  const wrangler = pathToFileURL(resolveModule("wrangler", dirname(config))).href;
  const { experimental_readRawConfig }: Wrangler = await import(wrangler);
  const { rawConfig } = experimental_readRawConfig({ config });
  if (rawConfig.limits !== undefined) return none;
  const file = join(dirname(config), `.wrangler-${process.pid}.json`);
  await writeFile(file, JSON.stringify({ ...rawConfig, limits: LIMITS }));
  return { args: ["--config", file], [Symbol.asyncDispose]: () => rm(file, { force: true }) };
}

interface Wrangler {
  experimental_readRawConfig(args: { config: string }): { rawConfig: { limits?: object } };
}
