/** The additional part of `dev`: watches the sources, and replaces the edge and the worker when they change. */
import { rmSync } from "node:fs";
import { extname, join, resolve } from "node:path";
import getPort from "get-port";
import type { Bundle } from "../bundle/bundle.ts";
import { requireCallers } from "../bundle/configuration.ts";
import type { Build } from "../bundle/dev-bundle.ts";
import { startBundler } from "../bundle/start-bundler.ts";
import { HOST, type Ports } from "../process/ports.ts";
import { openReverseProxy, ReplaceableService } from "../process/replaceable-service.ts";
import type { Service } from "../process/supervise.ts";
import { FileWatcher } from "../process/watch-files.ts";
import type { Project } from "../project.ts";
import { duration } from "../terminal/report.ts";
import { healthHost, type Stack } from "./stack.ts";

/** A part that the launcher stops before it exits. */
export interface Stoppable {
  stop(): Promise<void>;
}

interface DevOptions {
  project: Project;
  stack: Stack;
  ports: Ports;
  /** Text bindings of the edge, in addition to those from the environment. */
  bindings: Record<string, string>;
  /** The data directory, which is not watched. */
  data: string | undefined;
  say(text: string): void;
  /** Returns the handler for the output lines of the process with this label. */
  lineHandler(label: string): NonNullable<Service["onLine"]>;
  /** Receives the parts to stop with the launcher; the first is stopped first. */
  parts: Stoppable[];
}

/** A change to such a file always causes a build; a change to any other file only if a program includes it. */
const CODE_EXTENSION = /^\.([cm]?[jt]sx?|json)$/;
/** How long a replaced edge may take to finish its requests: the longest `await_result`, and a margin. */
const EDGE_DRAIN_MS = 330_000;
/** How long the edge and the worker may take to end with the launcher. */
const EDGE_STOP_TIMEOUT_MS = 1_000;
const WORKER_STOP_TIMEOUT_MS = 6_000;

/** Starts the worker and the edge and replaces them at each edit; resolves when both are up for the first time. */
export async function develop(options: DevOptions): Promise<void> {
  const { project, data, say, parts } = options;
  const programs = await programsOf(options);
  const updates = new Updates(programs, say);
  const matters = (path: string) =>
    CODE_EXTENSION.test(extname(path)) || programs.some((program) => program.includes(path));
  const watcher = new FileWatcher(project.root, {
    ignoredFolders: data === undefined ? [] : [resolve(data)],
    onChange: (paths) => void ([...paths].some(matters) && updates.onChange()),
    onLimit: (error) => say(`Edits in some folders go unnoticed: ${error.message}.`),
  });
  parts.unshift({ stop: async () => watcher.close() });
  void updates.onChange();
  await updates.up;
}

/** The worker and the edge, each behind a reverse proxy on its port. */
async function programsOf({ project, stack, ports, bindings, say, lineHandler, parts }: DevOptions) {
  const folder = `dev-${process.pid}`;
  const build = startBundler(folder);
  const proxies = await Promise.all([
    openReverseProxy(healthHost(process.env), ports.worker),
    openReverseProxy(HOST, ports.edge),
  ]);
  const [worker, edge] = proxies.map((proxy) => new ReplaceableService(proxy, say)) as [
    ReplaceableService,
    ReplaceableService,
  ];
  parts.unshift({ stop: () => edge.stop(EDGE_STOP_TIMEOUT_MS) }, { stop: () => worker.stop(WORKER_STOP_TIMEOUT_MS) });
  process.on("exit", () => rmSync(join(project.root, ".build", folder), { recursive: true, force: true }));
  return [
    new DevProgram<string>(
      "the worker",
      () => build("worker"),
      async () => {
        const port = await getPort({ host: HOST });
        // Waits for the previous worker, which could still run jobs with the code from before the edit.
        await worker.replace({ ...stack.worker(HOST, port), onLine: lineHandler("worker") }, port, { waits: true });
      },
    ),
    new DevProgram<Bundle>(
      "the edge",
      () => build("edge"),
      async (bundle) => {
        requireCallers(Object.keys(bundle.objects));
        const port = await getPort({ host: HOST });
        // At this level the edge logs the messages of errors that tools throw.
        const service = stack.edge(bundle, port, { LOG_LEVEL: "debug", ...bindings }, EDGE_DRAIN_MS);
        await edge.replace({ ...service, onLine: lineHandler("edge") }, port);
      },
    ),
  ];
}

/** A program that an update may replace. */
type Program = Pick<DevProgram<unknown>, "name" | "isUp" | "update">;

/** The edge or the worker: its running version, and how to build and start another. */
class DevProgram<T> {
  readonly name: string;
  readonly #build: () => Promise<Build<T>>;
  readonly #replace: (program: T) => Promise<void>;
  #version: string | undefined;
  #sources: ReadonlySet<string> = new Set();

  constructor(name: string, build: () => Promise<Build<T>>, replace: (program: T) => Promise<void>) {
    this.name = name;
    this.#build = build;
    this.#replace = replace;
  }

  get isUp(): boolean {
    return this.#version !== undefined;
  }

  includes(path: string): boolean {
    return this.#sources.has(path);
  }

  /**
   * Builds the sources and, if the result differs, replaces the running version; resolves to whether it did.
   *
   * @throws {Error} with the problem in the sources
   */
  async update(): Promise<boolean> {
    const { version, program, inputs } = await this.#build();
    this.#sources = new Set(inputs);
    if (version === this.#version) return false;
    await this.#replace(program);
    const isFirst = this.#version === undefined;
    this.#version = version;
    return !isFirst;
  }
}

/** Updates the programs when the sources change, one update at a time, and reports the outcome. */
class Updates {
  readonly #programs: readonly Program[];
  readonly #say: (text: string) => void;
  readonly #firstUp = Promise.withResolvers<void>();
  #isUpdating = false;
  /** Whether the sources have changed since the update began. */
  #hasChanged = false;
  /** The names of the programs that run a new version since the first change of the sources, and the time of that change. */
  readonly #newNames = new Set<string>();
  #changedAt: number | undefined;
  /** The problems in the sources that were reported last. */
  #problems = "";

  constructor(programs: readonly Program[], say: (text: string) => void) {
    this.#programs = programs;
    this.#say = say;
  }

  /** Resolves when all programs are up for the first time. */
  get up(): Promise<void> {
    return this.#firstUp.promise;
  }

  async onChange(): Promise<void> {
    this.#hasChanged = true;
    if (this.#isUpdating) return;
    this.#isUpdating = true;
    while (this.#hasChanged) {
      this.#hasChanged = false;
      await this.#update();
    }
    this.#isUpdating = false;
    if (this.#programs.every((program) => program.isUp)) this.#firstUp.resolve();
  }

  async #update(): Promise<void> {
    this.#changedAt ??= Date.now();
    const problems = new Set<string>();
    await Promise.all(
      this.#programs.map(async (program) => {
        const isNew = await program.update().catch((error: Error) => void problems.add(error.message));
        if (isNew) this.#newNames.add(program.name);
      }),
    );
    // The sources have changed again, perhaps between the builds of the two programs: the next update reports.
    if (this.#hasChanged) return;
    this.#reportNewVersions(this.#changedAt);
    this.#changedAt = undefined;
    this.#reportProblems([...problems].join("\n\n"));
  }

  #reportNewVersions(since: number): void {
    const names = this.#programs.map(({ name }) => name).filter((name) => this.#newNames.has(name));
    this.#newNames.clear();
    const run = names.length > 1 ? "run" : "runs";
    if (names.length > 0) this.#say(`${names.join(" and ")} ${run} the new version (${duration(Date.now() - since)})`);
  }

  #reportProblems(text: string): void {
    if (text !== this.#problems && text !== "") {
      const consequence = this.#programs.every((program) => program.isUp)
        ? "The previous version continues."
        : "Waiting for an edit.";
      this.#say(`The sources do not run as they are. ${consequence}\n\n${text}\n`);
    }
    this.#problems = text;
  }
}
