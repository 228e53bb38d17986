/** Runs the project's own wrangler. */
import { randomUUID } from "node:crypto";
import { readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { execa } from "execa";
import { resolveModule } from "../package.ts";

const program = () => join(dirname(resolveModule("wrangler/package.json", process.cwd())), "bin/wrangler.js");

/** Runs wrangler on this terminal; resolves to its exit code and the addresses of the deployment. */
export async function runWrangler(args: readonly string[]): Promise<{ exitCode: number; targets: string[] }> {
  const report = join(tmpdir(), `wrangler-${randomUUID()}.json`);
  const env = { WRANGLER_OUTPUT_FILE_PATH: report };
  const { exitCode } = await execa(process.execPath, [program(), ...args], { stdio: "inherit", reject: false, env });
  const text = await readFile(report, "utf8").catch(() => "");
  await rm(report, { force: true });
  const events: { type: string; targets?: string[] }[] = text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line));
  return { exitCode: exitCode ?? 1, targets: events.find(({ type }) => type === "deploy")?.targets ?? [] };
}

/** The standard output of a wrangler command; undefined if it fails. */
export async function wranglerOutput(...args: string[]): Promise<string | undefined> {
  const env = { WRANGLER_HIDE_BANNER: "true" };
  const { stdout, failed } = await execa(process.execPath, [program(), ...args], {
    stdin: "ignore",
    reject: false,
    env,
  });
  return failed ? undefined : stdout;
}
