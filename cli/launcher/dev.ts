/** What `dev` does besides: it watches the sources, and replaces the edge and the worker by what they have become. */
import { rmSync } from "node:fs";
import { extname, join, resolve } from "node:path";
import getPort from "get-port";
import type { Bundle } from "../bundle/bundle.ts";
import { startBundler } from "../bundle/bundler-process.ts";
import type { Built } from "../bundle/dev-bundle.ts";
import { openFront } from "../process/front.ts";
import type { Ports } from "../process/ports.ts";
import { Replaceable } from "../process/replaceable.ts";
import { watchFiles } from "../process/watch-files.ts";
import type { Project } from "../project.ts";
import { duration } from "../terminal/report.ts";
import { HOST, healthHost, type Stack } from "./stack.ts";
import type { Listening, Running } from "./start.ts";

export interface DevOptions {
  project: Project;
  stack: Stack;
  ports: Ports;
  /** The edge's, beside those of the environment. */
  bindings: Record<string, string>;
  /** Where the state is, which is not watched. */
  data: string | undefined;
  say(text: string): void;
  listening: Listening;
  /** What is ended with the launcher, first to last. */
  running: Running[];
}

/** A change to these is looked at in any case; to another file when it is part of the edge or of the worker. */
const CODE = /^\.([cm]?[jt]sx?|json)$/;
/** How long a replaced edge may take to answer what it had begun: the longest `await_result`, and a little. */
const LAST_ANSWERS = 330_000;
/** How long each may take to end with everything else, in milliseconds. */
const PATIENCE = { edge: 1_000, worker: 6_000 };

/** Starts the worker and the edge and replaces them at each edit; resolves when both are up for the first time. */
export async function develop(options: DevOptions): Promise<void> {
  const { project, stack, ports, say, listening, running } = options;
  const bundles = `dev-${process.pid}`;
  const build = startBundler(bundles);
  const fronts = await Promise.all([openFront(healthHost(process.env), ports.worker), openFront(HOST, ports.edge)]);
  const [worker, edge] = fronts.map((front) => new Replaceable(front, say)) as [Replaceable, Replaceable];
  running.unshift({ stop: () => edge.stop(PATIENCE.edge) }, { stop: () => worker.stop(PATIENCE.worker) });
  process.on("exit", () => rmSync(join(project.root, ".build", bundles), { recursive: true, force: true }));

  const parts = [
    new Part<string>(
      "the worker",
      () => build("worker"),
      async () => {
        const port = await getPort({ host: HOST });
        await worker.replace({ ...stack.worker(HOST, port), onLine: listening("worker") }, port);
      },
    ),
    new Part<Bundle>(
      "the edge",
      () => build("edge"),
      async (bundle) => {
        const port = await getPort({ host: HOST });
        // What a tool throws is the author's to read, message and all.
        const bindings = { LOG_LEVEL: "debug", ...options.bindings };
        const service = stack.edge(bundle, port, bindings, LAST_ANSWERS);
        await edge.replace({ ...service, onLine: listening("edge") }, port);
      },
    ),
  ];

  let shown = "";
  let again = false;
  const update = async (): Promise<void> => {
    const began = Date.now();
    const problems = new Set<string>();
    const replaced = await Promise.all(
      parts.map((part) => part.update().catch((error: Error) => void problems.add(error.message))),
    );
    const names = parts.filter((_, i) => replaced[i]).map(({ name }) => name);
    const run = names.length > 1 ? "run" : "runs";
    if (names.length > 0) say(`${names.join(" and ")} ${run} the new version (${duration(Date.now() - began)})`);
    // What was wrong with sources that have changed again may be wrong no more.
    if (again) return;
    const text = [...problems].join("\n\n");
    if (text !== shown && text !== "") {
      const before = parts.every(({ isUp }) => isUp) ? "What was there before goes on." : "Waiting for an edit.";
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
    if (parts.every(({ isUp }) => isUp)) up.resolve();
  };

  const ignored = options.data === undefined ? [] : [resolve(options.data)];
  const watcher = watchFiles(project.root, ignored, (paths) => {
    const isPart = (path: string) => CODE.test(extname(path)) || parts.some((part) => part.inputs.has(path));
    if ([...paths].some(isPart)) void changed();
  });
  running.unshift({ stop: async () => watcher.close() });
  void changed();
  await up.promise;
}

/** The edge or the worker: what runs of it, and what its sources are now. */
class Part<T> {
  readonly name: string;
  readonly #build: () => Promise<Built<T>>;
  readonly #replace: (program: T) => Promise<void>;
  #running: string | undefined;
  inputs: ReadonlySet<string> = new Set();

  constructor(name: string, build: () => Promise<Built<T>>, replace: (program: T) => Promise<void>) {
    this.name = name;
    this.#build = build;
    this.#replace = replace;
  }

  get isUp(): boolean {
    return this.#running !== undefined;
  }

  /**
   * Replaces what runs if the sources have become something else; resolves to whether it has.
   *
   * @throws {Error} with what is wrong with the sources
   */
  async update(): Promise<boolean> {
    const { version, program, inputs } = await this.#build();
    this.inputs = new Set(inputs);
    if (version === this.#running) return false;
    await this.#replace(program);
    const isFirst = this.#running === undefined;
    this.#running = version;
    return !isFirst;
  }
}
