/** The additional part of `dev`: watches the sources, and replaces the edge and the worker when they change. */
import { rmSync } from "node:fs";
import { extname, join, resolve } from "node:path";
import getPort from "get-port";
import type { Bundle } from "../bundle/bundle.ts";
import type { Built } from "../bundle/dev-bundle.ts";
import { startBundler } from "../bundle/start-bundler.ts";
import { HOST, type Ports } from "../process/ports.ts";
import { openReverseProxy, ReplaceableService } from "../process/replaceable-service.ts";
import type { Service } from "../process/supervise.ts";
import { watchFiles } from "../process/watch-files.ts";
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
  listening(label: string): NonNullable<Service["onLine"]>;
  /** Receives the parts to stop with the launcher; the first is stopped first. */
  running: Stoppable[];
}

/** A change to such a file always causes a build; a change to any other file only if a program includes it. */
const CODE = /^\.([cm]?[jt]sx?|json)$/;
/** How long a replaced edge may take to finish its requests, in milliseconds: the longest `await_result`, and a margin. */
const LAST_ANSWERS = 330_000;
/** How long the edge and the worker may take to end with the launcher, in milliseconds. */
const EDGE_PATIENCE = 1_000;
const WORKER_PATIENCE = 6_000;

/** Starts the worker and the edge and replaces them at each edit; resolves when both are up for the first time. */
export async function develop(options: DevOptions): Promise<void> {
  const { project, stack, ports, say, listening, running } = options;
  const bundles = `dev-${process.pid}`;
  const build = startBundler(bundles);
  const proxies = await Promise.all([
    openReverseProxy(healthHost(process.env), ports.worker),
    openReverseProxy(HOST, ports.edge),
  ]);
  const [worker, edge] = proxies.map((proxy) => new ReplaceableService(proxy, say)) as [
    ReplaceableService,
    ReplaceableService,
  ];
  running.unshift({ stop: () => edge.stop(EDGE_PATIENCE) }, { stop: () => worker.stop(WORKER_PATIENCE) });
  process.on("exit", () => rmSync(join(project.root, ".build", bundles), { recursive: true, force: true }));

  const programs = [
    watched<string>(
      "the worker",
      () => build("worker"),
      async () => {
        const port = await getPort({ host: HOST });
        // Waits for the previous worker, which could still run jobs with the code from before the edit.
        await worker.replace({ ...stack.worker(HOST, port), onLine: listening("worker") }, port, { waits: true });
      },
    ),
    watched<Bundle>(
      "the edge",
      () => build("edge"),
      async (bundle) => {
        const port = await getPort({ host: HOST });
        // At this level the edge logs the messages of errors that tools throw.
        const bindings = { LOG_LEVEL: "debug", ...options.bindings };
        const service = stack.edge(bundle, port, bindings, LAST_ANSWERS);
        await edge.replace({ ...service, onLine: listening("edge") }, port);
      },
    ),
  ];

  let shown = "";
  let again = false;
  /** The programs that run a new version since the first change of the sources, and the time of that change. */
  const renewed = new Set<string>();
  let began: number | undefined;
  const update = async (): Promise<void> => {
    began ??= Date.now();
    const problems = new Set<string>();
    await Promise.all(
      programs.map(async (program) => {
        const isNew = await program.update().catch((error: Error) => void problems.add(error.message));
        if (isNew) renewed.add(program.name);
      }),
    );
    // The sources have changed again, perhaps between the builds of the two programs: the next update reports.
    if (again) return;
    const names = programs.map(({ name }) => name).filter((name) => renewed.has(name));
    const run = names.length > 1 ? "run" : "runs";
    if (names.length > 0) say(`${names.join(" and ")} ${run} the new version (${duration(Date.now() - began)})`);
    renewed.clear();
    began = undefined;
    const text = [...problems].join("\n\n");
    if (text !== shown && text !== "") {
      const before = programs.every((program) => program.isUp())
        ? "The previous version goes on."
        : "Waiting for an edit.";
      say(`The sources do not run as they are. ${before}\n\n${text}\n`);
    }
    shown = text;
  };

  const up = Promise.withResolvers<void>();
  let updating: Promise<void> | undefined;
  const changed = async (): Promise<void> => {
    again = true;
    if (updating) return;
    while (again) {
      again = false;
      updating = update();
      await updating;
    }
    updating = undefined;
    if (programs.every((program) => program.isUp())) up.resolve();
  };

  const ignored = options.data === undefined ? [] : [resolve(options.data)];
  const matters = (path: string) => CODE.test(extname(path)) || programs.some((program) => program.includes(path));
  const watcher = watchFiles(
    project.root,
    ignored,
    (paths) => void ([...paths].some(matters) && changed()),
    (error) => say(`Edits in some folders go unnoticed: ${error.message}.`),
  );
  running.unshift({ stop: async () => watcher.close() });
  void changed();
  await up.promise;
}

/** The edge or the worker: its running version, and how to build and start another. */
function watched<T>(name: string, build: () => Promise<Built<T>>, replace: (program: T) => Promise<void>) {
  let running: string | undefined;
  let sources: ReadonlySet<string> = new Set();
  return {
    name,
    isUp: () => running !== undefined,
    includes: (path: string) => sources.has(path),
    /**
     * Builds the sources and, if the result differs, replaces the running version; resolves to whether it did.
     *
     * @throws {Error} with the problem in the sources
     */
    async update(): Promise<boolean> {
      const { version, program, inputs } = await build();
      sources = new Set(inputs);
      if (version === running) return false;
      await replace(program);
      const isFirst = running === undefined;
      running = version;
      return !isFirst;
    },
  };
}
