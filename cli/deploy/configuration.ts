/** The project's configuration as it is deployed: with what depends on the account. */
import { rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { resolveModule } from "../package.ts";

/**
 * What one request may take before Cloudflare ends it: several times what the largest request that is accepted needs. A job
 * that runs in the account's own Workers has as much until its next suspension.
 */
const LIMITS = { cpu_ms: 5_000, subrequests: 10_000 };

/** What the account has to it. */
export interface Additions {
  /** The paid plan: a deployment may set limits, which the free one refuses. */
  readonly isPaid: boolean;
  /** The Worker that has the worker's containers, when it is there: the Resonate object wakes them. */
  readonly containers: string | undefined;
}

export interface DeployedConfiguration extends AsyncDisposable {
  /** What wrangler is told. */
  readonly args: readonly string[];
}

/**
 * The project's configuration with what the account adds, for as long as it is deployed. It lies beside the project's own,
 * whose paths are then its, too.
 */
export async function withAdditions(config: string, { isPaid, containers }: Additions): Promise<DeployedConfiguration> {
  const none = { args: [], async [Symbol.asyncDispose]() {} };
  if (!isPaid && containers === undefined) return none;
  const wrangler = pathToFileURL(resolveModule("wrangler", dirname(config))).href;
  const { experimental_readRawConfig }: Wrangler = await import(wrangler);
  const { rawConfig } = experimental_readRawConfig({ config });
  const objects = rawConfig.durable_objects?.bindings ?? [];
  const made = {
    ...rawConfig,
    ...(isPaid && { limits: rawConfig.limits ?? LIMITS }),
    ...(containers !== undefined && {
      durable_objects: {
        bindings: [...objects, { name: "WORKER", class_name: "WorkerContainer", script_name: containers }],
      },
    }),
  };
  const file = join(dirname(config), `.wrangler-${process.pid}.json`);
  await writeFile(file, JSON.stringify(made));
  return { args: ["--config", file], [Symbol.asyncDispose]: () => rm(file, { force: true }) };
}

interface Wrangler {
  experimental_readRawConfig(args: { config: string }): {
    rawConfig: { limits?: object; durable_objects?: { bindings?: object[] } };
  };
}
