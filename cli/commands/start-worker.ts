/** `worker`: runs the worker of the project in this folder. */
import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { usageOf } from "../arguments.ts";
import { readProject, workerOf } from "../project.ts";

export const usage = usageOf(
  "",
  `Runs the worker of the project in this folder until SIGTERM or SIGINT. It is configured by the environment: RESONATE_URL,
RESONATE_TOKEN, RESONATE_GROUP, RESONATE_NAMESPACE, HEALTH_PORT and more.`,
);

export async function run(args: string[]): Promise<void> {
  parseArgs({ args, options: {} });
  await import(pathToFileURL(workerOf(readProject())).href);
}
