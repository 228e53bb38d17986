/** Runs the project's own wrangler. */
import { randomUUID } from "node:crypto";
import { readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { execa } from "execa";
import { jsonOf } from "../../core/resonate/index.ts";
import { wranglerProgram } from "../package.ts";

const program = () => wranglerProgram(process.cwd());

/** Runs wrangler on this terminal; resolves to the addresses of the deployment. Undefined if it fails, as this process then does. */
export type RunWrangler = (args: readonly string[]) => Promise<readonly string[] | undefined>;

export const runWrangler: RunWrangler = async (args) => {
  const report = join(tmpdir(), `wrangler-${randomUUID()}.json`);
  const env = { WRANGLER_OUTPUT_FILE_PATH: report };
  const { exitCode = 1 } = await execa(process.execPath, [program(), ...args], {
    stdio: "inherit",
    reject: false,
    env,
  });
  const text = await readFile(report, "utf8").catch(() => "");
  await rm(report, { force: true });
  if (exitCode !== 0) {
    process.exitCode = exitCode;
    return undefined;
  }
  const events: { type: string; targets?: string[] }[] = text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line));
  return events.find(({ type }) => type === "deploy")?.targets ?? [];
};

/** What a wrangler command prints as JSON; undefined if it fails. */
export async function wranglerJson<T>(...args: string[]): Promise<T | undefined> {
  const options = { stdin: "ignore", reject: false, env: { WRANGLER_HIDE_BANNER: "true" } } as const;
  const { stdout, failed } = await execa(process.execPath, [program(), ...args, "--json"], options);
  return failed ? undefined : (jsonOf(stdout) as T | undefined);
}
