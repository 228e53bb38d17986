/**
 * The program that bundles for `dev`, and answers each request with the result. It is a process apart from the launcher,
 * because a Ctrl-C at the terminal reaches the launcher's process group and would end esbuild in the middle of a build.
 */
import { readProject } from "../project.ts";
import { type Build, CompileError, DevBundler } from "./dev-bundle.ts";

/** What a request asks for. There is one request for each at a time. */
export type Part = "edge" | "worker";

/** A build, or the problem in the sources. */
export type BuildAnswer = { part: Part } & ({ build: Build<unknown> } | { problem: string });

const bundler = await DevBundler.open(readProject(), process.argv[2] ?? "dev");

async function build(part: Part): Promise<BuildAnswer> {
  try {
    return { part, build: await bundler[part]() };
  } catch (error) {
    const isInSources = error instanceof CompileError;
    return { part, problem: isInSources ? error.message : ((error as Error).stack ?? String(error)) };
  }
}

process.on("message", async (part: Part) => process.send?.(await build(part)));
process.on("disconnect", () => process.exit());
