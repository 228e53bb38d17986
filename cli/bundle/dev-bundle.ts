/** Bundles for `dev`: only what has changed is parsed again. */
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import type { BuildContext, BuildFailure, BuildOptions, BuildResult } from "esbuild";
import { loadEsbuild } from "../build/esbuild.ts";
import { buildPages } from "../build/pages.ts";
import { put } from "../build/put.ts";
import { configurationOf, edgeOf, type Project, workerOf } from "../project.ts";
import { type Bundle, EDGE_MODULE, isOwn, keep, modulesIn, settingsOf } from "./bundle.ts";
import { type Configuration, readConfiguration } from "./configuration.ts";
import { edgeOptions } from "./edge-options.ts";
import { filesOf } from "./files.ts";

/** The sources do not compile; the message names the file and the line. */
export class CompileError extends Error {}

const isAuthors = ({ message }: Error) => Promise.reject(new CompileError(message));

export interface Built<T> {
  readonly version: string;
  readonly program: T;
  /** The absolute paths of the project's files in the program. */
  readonly inputs: readonly string[];
}

/** Returns a bundler that writes to the folder `name` in the project's `.build`. */
export async function devBundler(project: Project, name: string) {
  const { root } = project;
  const esbuild = await loadEsbuild(root);
  const config = configurationOf(project);
  const dir = join(root, ".build", name);
  await keep(dir);
  const contexts = new Map<string, BuildContext>();
  let read: { text: string; configuration: Configuration } | undefined;
  let count = 0;

  const configuration = async (): Promise<Configuration> => {
    const text = readFileSync(config, "utf8");
    if (read?.text !== text) read = { text, configuration: await readConfiguration(config) };
    return read.configuration;
  };

  const build = async (options: BuildOptions) => {
    // A context parses only changed files; it is kept while its options stay the same.
    const key = JSON.stringify(options);
    let context = contexts.get(key);
    if (!context) {
      context = await esbuild.context({ ...options, absWorkingDir: root });
      contexts.set(key, context);
    }
    return context.rebuild().catch(async (failure: BuildFailure) => {
      if (!Array.isArray(failure.errors)) throw failure;
      const color = Boolean(process.stdout.isTTY);
      const messages = await esbuild.formatMessages(failure.errors, { kind: "error", color });
      throw new CompileError(messages.join("").trim());
    });
  };

  return {
    /** @throws {CompileError} */
    async edge(): Promise<Built<Bundle>> {
      const pages = await buildPages().catch(isAuthors);
      const current = await configuration();
      const options = edgeOptions(edgeOf(project, current), current, root, "development");
      const result = await build({ ...options, outdir: dir });
      const settings = settingsOf(current, dirname(config));
      const files = await filesOf(result, root);
      const version = hash(JSON.stringify(settings), ...[...files].flat());
      // An edge that is being replaced may still need its own main module.
      const main = `${++count}-${EDGE_MODULE}`;
      for (const [name, text] of files) await put(dir, name.replace(/^(?=index\.js)/, `${count}-`), text);
      return {
        version,
        program: { ...settings, dir, main, modules: modulesIn(files.keys()) },
        inputs: [...inputsOf(result, root), config, ...pages],
      };
    },
    /** Checks that the worker compiles, and lists its sources. Node runs the sources themselves. @throws {CompileError} */
    async worker(): Promise<Built<string>> {
      const program = workerOf(project);
      const result = await build({
        entryPoints: [program],
        bundle: true,
        write: false,
        outdir: dir,
        format: "esm",
        platform: "node",
        packages: "external",
        sourcemap: "external", // So that an edit that only moves lines counts as a change: error stacks have line numbers.
        sourcesContent: false,
        metafile: true,
        logLevel: "silent",
      });
      return { version: hash(...texts(result)), program, inputs: inputsOf(result, root) };
    },
  };
}

/** The texts of the output files, the source map first if there is one. */
function texts({ outputFiles = [] }: BuildResult): string[] {
  return outputFiles
    .toSorted((a, b) => Number(b.path.endsWith(".map")) - Number(a.path.endsWith(".map")))
    .map((f) => f.text);
}

const inputsOf = ({ metafile }: BuildResult, root: string) =>
  Object.keys(metafile?.inputs ?? {})
    .filter(isOwn)
    .map((path) => resolve(root, path));

function hash(...parts: string[]): string {
  const sum = createHash("sha256");
  for (const part of parts) sum.update(`${part.length}\0`).update(part);
  return sum.digest("hex");
}
