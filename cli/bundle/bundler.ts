/**
 * The program that bundles for `dev`, apart from the launcher: a Ctrl-C at the terminal reaches every process of the
 * launcher's group, and would end esbuild in the middle of a build. Answers each message with what came of it.
 */

import { readProject } from "../project.ts";
import { type Built, CompileError, devBundler } from "./dev-bundle.ts";

/** What is asked of it: a build of the edge or of the worker. */
export interface BuildRequest {
  id: number;
  part: "edge" | "worker";
}

/** A build, or what is wrong with the sources. */
export type BuildAnswer = { id: number } & ({ built: Built<unknown> } | { problem: string });

const bundler = await devBundler(readProject(), process.argv[2] ?? "dev");

async function build({ id, part }: BuildRequest): Promise<BuildAnswer> {
  try {
    return { id, built: await bundler[part]() };
  } catch (error) {
    const isTheirs = error instanceof CompileError;
    return { id, problem: isTheirs ? error.message : ((error as Error).stack ?? String(error)) };
  }
}

process.on("message", async (request: BuildRequest) => process.send?.(await build(request)));
process.on("disconnect", () => process.exit());
process.send?.("ready");
