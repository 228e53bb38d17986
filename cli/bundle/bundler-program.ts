/**
 * The program that bundles for `dev`, and answers each request with the result. It is a process apart from the launcher,
 * because a Ctrl-C at the terminal reaches the launcher's process group and would end esbuild in the middle of a build.
 */
import { readProject } from "../project.ts";
import { type Built, CompileError, devBundler } from "./dev-bundle.ts";

/** What a request asks for. There is one request for each at a time. */
export type Part = "edge" | "worker";

/** A build, or the problem in the sources. */
export type BuildAnswer = { part: Part } & ({ built: Built<unknown> } | { problem: string });

const bundler = await devBundler(readProject(), process.argv[2] ?? "dev");

async function build(part: Part): Promise<BuildAnswer> {
  try {
    return { part, built: await bundler[part]() };
  } catch (error) {
    const isAuthors = error instanceof CompileError;
    return { part, problem: isAuthors ? error.message : ((error as Error).stack ?? String(error)) };
  }
}

process.on("message", async (part: Part) => process.send?.(await build(part)));
process.on("disconnect", () => process.exit());
