/** The wrangler configuration for a deployment: the project's own, with additions that depend on the account. */
import { rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { readRaw } from "../bundle/configuration.ts";

/**
 * The limits of one request, several times the needs of the largest accepted request. They also apply to a job in the
 * account's own Workers, for the time until its next suspension.
 */
const REQUEST_LIMITS = { cpu_ms: 5_000, subrequests: 10_000 };

/**
 * Writes the configuration beside the project's own, so that relative paths stay valid. `isPaid`: the account has the paid plan,
 * which allows limits. `containers`: the containers' Worker, if it exists, through which the Resonate object wakes them.
 */
export async function withAdditions(
  config: string,
  { isPaid, containers }: { isPaid: boolean; containers: string | undefined },
): Promise<AsyncDisposable & { args: readonly string[] }> {
  const none = { args: [], async [Symbol.asyncDispose]() {} };
  if (!isPaid && containers === undefined) return none;
  const raw = await readRaw<{ limits?: object; durable_objects?: { bindings?: object[] } }>(config);
  const objects = raw.durable_objects?.bindings ?? [];
  const configuration = {
    ...raw,
    ...(isPaid && { limits: raw.limits ?? REQUEST_LIMITS }),
    ...(containers !== undefined && {
      durable_objects: {
        bindings: [...objects, { name: "WORKER", class_name: "WorkerContainer", script_name: containers }],
      },
    }),
  };
  const file = join(dirname(config), `.wrangler-${process.pid}.json`);
  await writeFile(file, JSON.stringify(configuration));
  return { args: ["--config", file], [Symbol.asyncDispose]: () => rm(file, { force: true }) };
}
