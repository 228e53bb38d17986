/**
 * The program that bundles for `dev`, and answers each request with the result. It is a process apart from the launcher,
 * because a Ctrl-C at the terminal reaches the launcher's process group and would end esbuild in the middle of a build.
 */
import { readProject } from "../project.ts";
import { type Built, CompileError, devBundler } from "./dev-bundle.ts";

export interface BuildRequest {
  id: number;
  part: "edge" | "worker";
}

/** A build, or the problem in the sources. */
export type BuildAnswer = { id: number } & ({ built: Built<unknown> } | { problem: string });

const bundler = await devBundler(readProject(), process.argv[2] ?? "dev");

async function build({ id, part }: BuildRequest): Promise<BuildAnswer> {
  try {
    return { id, built: await bundler[part]() };
  } catch (error) {
    const isAuthors = error instanceof CompileError;
    return { id, problem: isAuthors ? error.message : ((error as Error).stack ?? String(error)) };
  }
}

process.on("message", async (request: BuildRequest) => process.send?.(await build(request)));
process.on("disconnect", () => process.exit());
process.send?.("ready");
