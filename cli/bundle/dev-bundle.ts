/** Bundles for `dev`: only what has changed is parsed again. */
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import type { BuildContext, BuildFailure, BuildOptions, BuildResult } from "esbuild";
import { configurationOf, edgeOf, type Project, workerOf } from "../project.ts";
import { type Bundle, EDGE_MODULE, isOwn, keep, modulesIn, settingsOf } from "./bundle.ts";
import { type Configuration, readConfiguration } from "./configuration.ts";
import { edgeOptions } from "./edge-options.ts";
import { loadEsbuild } from "./esbuild.ts";
import { filesOf } from "./files.ts";
import { buildPages } from "./pages.ts";
import { put } from "./put.ts";

/** The sources do not compile; the message names the file and the line. */
export class CompileError extends Error {}

const asCompileError = ({ message }: Error) => Promise.reject(new CompileError(message));

/** A program that compiles. */
export interface Build<T> {
  readonly version: string;
  readonly program: T;
  /** The absolute paths of the project's files in the program. */
  readonly inputs: readonly string[];
}

/** Bundles into the folder `name` in the project's `.build`. */
export class DevBundler {
  readonly #project: Project;
  readonly #dir: string;
  readonly #config: string;
  readonly #esbuild: Awaited<ReturnType<typeof loadEsbuild>>;
  /** A context parses only changed files; it is kept while its options stay the same. */
  readonly #contexts = new Map<string, BuildContext>();
  #lastRead: { text: string; configuration: Configuration } | undefined;
  #edgeCount = 0;

  private constructor(project: Project, dir: string, esbuild: Awaited<ReturnType<typeof loadEsbuild>>) {
    this.#project = project;
    this.#dir = dir;
    this.#config = configurationOf(project);
    this.#esbuild = esbuild;
  }

  static async open(project: Project, name: string): Promise<DevBundler> {
    const dir = join(project.root, ".build", name);
    const bundler = new DevBundler(project, dir, await loadEsbuild(project.root));
    await keep(dir);
    return bundler;
  }

  /** @throws {CompileError} */
  async edge(): Promise<Build<Bundle>> {
    const { root } = this.#project;
    const pages = await buildPages().catch(asCompileError);
    const configuration = await this.#configuration();
    const options = edgeOptions(edgeOf(this.#project, configuration), configuration, root, "development");
    const result = await this.#build({ ...options, outdir: this.#dir });
    const settings = settingsOf(configuration, dirname(this.#config));
    const files = await filesOf(result, root);
    const version = hash(JSON.stringify(settings), ...[...files].flat());
    // An edge that is being replaced may still need its own main module.
    const prefix = `${++this.#edgeCount}-`;
    for (const [name, text] of files) await put(this.#dir, name.replace(/^(?=index\.js)/, prefix), text);
    return {
      version,
      program: { ...settings, dir: this.#dir, main: `${prefix}${EDGE_MODULE}`, modules: modulesIn(files.keys()) },
      inputs: [...inputsOf(result, root), this.#config, ...pages],
    };
  }

  /** Checks that the worker compiles, and lists its sources. Node runs the sources themselves. @throws {CompileError} */
  async worker(): Promise<Build<string>> {
    const program = workerOf(this.#project);
    const result = await this.#build({
      entryPoints: [program],
      bundle: true,
      write: false,
      outdir: this.#dir,
      format: "esm",
      platform: "node",
      packages: "external",
      sourcemap: "external", // So that an edit that only moves lines counts as a change: error stacks have line numbers.
      sourcesContent: false,
      metafile: true,
      logLevel: "silent",
    });
    return { version: hash(...texts(result)), program, inputs: inputsOf(result, this.#project.root) };
  }

  async #configuration(): Promise<Configuration> {
    const text = readFileSync(this.#config, "utf8");
    if (this.#lastRead?.text !== text) {
      this.#lastRead = { text, configuration: await readConfiguration(this.#config) };
    }
    return this.#lastRead.configuration;
  }

  async #build(options: BuildOptions): Promise<BuildResult> {
    const key = JSON.stringify(options);
    let context = this.#contexts.get(key);
    if (!context) {
      context = await this.#esbuild.context({ ...options, absWorkingDir: this.#project.root });
      this.#contexts.set(key, context);
    }
    return context.rebuild().catch(async (failure: BuildFailure) => {
      if (!Array.isArray(failure.errors)) throw failure;
      const color = Boolean(process.stdout.isTTY);
      const messages = await this.#esbuild.formatMessages(failure.errors, { kind: "error", color });
      throw new CompileError(messages.join("").trim());
    });
  }
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
