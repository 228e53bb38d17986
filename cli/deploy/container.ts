/** Decides whether the worker runs in a container of the account, and writes the configuration of the container's Worker. */
import { existsSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { execa } from "execa";
import { readRaw } from "../bundle/configuration.ts";
import type { Account, Bindings } from "./account.ts";

/** The path of the container's configuration in a project, and in this repository. */
const CONFIG_PATHS = ["container/wrangler.toml", "infra/container/wrangler.toml"] as const;

/** Variables that the worker needs with the same values as the edge, if the edge has them. */
const SHARED_VARIABLES = ["RESONATE_URL", "RESONATE_TOKEN", "RESONATE_GROUP", "RESONATE_NAMESPACE", "ENCRYPTION_KEYS"];

export interface Choice {
  readonly runsIn: "container" | "workers";
  /** The choice and its reason, for people. */
  readonly explanation: string;
  readonly isDeployed: boolean;
}

export interface Situation {
  readonly root: string;
  /** Undefined in a dry run without a login. */
  readonly account: Pick<Account, "hasContainers"> | undefined;
  /** The bindings of the edge, including those that it gets now. */
  readonly edge: Bindings;
  /** The bindings of the container's Worker; undefined if it does not exist. */
  readonly worker: Bindings | undefined;
  /** The choice by `--container` or `--no-container`, if any. */
  readonly isRequested: boolean | undefined;
  readonly image: string | undefined;
  readonly secretsFile: string | undefined;
}

/** Decides where the jobs run: in a container if the account has Containers and an image is available. */
export async function chooseContainer(situation: Situation): Promise<Choice> {
  const { root, account, edge, worker, isRequested, image, secretsFile } = situation;
  const has = (bindings: Bindings | undefined, name: string) => bindings?.some((each) => each.name === name) ?? false;
  const lastPlace = edge.find(({ name }) => name === "RUNS_IN")?.text;
  const isRunning = lastPlace === "container" && worker !== undefined;
  const inWorkers = (why: string): Choice => {
    if (isRequested) throw new Error(`No container: ${why}.`);
    // The reason may pass, or be an oversight.
    if (isRunning && isRequested === undefined) {
      throw new Error(
        `Nothing was deployed: jobs run in a container now, and ${why}. Correct that and repeat, or end the container ` +
          "with --no-container.",
      );
    }
    return { runsIn: "workers", explanation: `Jobs run in the account's own Workers: ${why}.`, isDeployed: false };
  };
  const inContainer = (why: string, isDeployed = true): Choice => ({
    runsIn: "container",
    explanation: `Jobs run in a container of the account, ${why}.`,
    isDeployed,
  });
  if (isRequested === false) return inWorkers("as --no-container says");
  if (isRequested === undefined && !isRunning && has(edge, "RESONATE_URL")) {
    const explanation = "Jobs run in the workers of the server that RESONATE_URL names.";
    return { runsIn: "workers", explanation, isDeployed: false };
  }
  if (!configIn(root)) return inWorkers(`the project has no ${CONFIG_PATHS[0]}`);
  if (!account) return inWorkers("whether the account has Containers is not known");
  if (!(await account.hasContainers())) {
    return inWorkers("the account has no Containers (the paid plan has), or this login may not use them");
  }
  if (isRequested === undefined && lastPlace === "workers")
    return inWorkers("as they did before (--container changes it)");
  const missingNames = SHARED_VARIABLES.filter((name) => has(edge, name) && !has(worker, name));
  if (missingNames.length > 0 && secretsFile === undefined) {
    return inWorkers(
      `it needs ${missingNames.join(", ")} as the edge has it: put that into a file, --container-secrets FILE`,
    );
  }
  if (image !== undefined) return inContainer(`from ${image}`);
  if (await canBuild()) return inContainer("from an image that Docker builds here");
  if (isRunning) return inContainer("which stays as it is: no Docker runs here", false);
  return inWorkers("no Docker runs here that could build its image (--image names one in a registry)");
}

/** Whether Docker runs here. Wrangler makes the same check. */
async function canBuild(): Promise<boolean> {
  const docker = process.env.WRANGLER_DOCKER_BIN || "docker";
  return !(await execa(docker, ["info"], { reject: false, stdio: "ignore", timeout: 20_000 })).failed;
}

function configIn(root: string): string | undefined {
  return CONFIG_PATHS.map((config) => join(root, config)).find((path) => existsSync(path));
}

export const workerName = (edge: string): string => `${edge}-worker`;

/** Writes the configuration of the container's Worker and returns its file; undefined if the project has none. */
export async function containerConfig(
  root: string,
  edge: string,
  { image, vars = {} }: { image?: string | undefined; vars?: Readonly<Record<string, string>> } = {},
): Promise<string | undefined> {
  const path = configIn(root);
  if (path === undefined) return undefined;
  const raw = await readRaw<WorkerConfiguration>(path);
  const from = (file: string) => resolve(dirname(path), file);
  const [container = { image: "" }] = raw.containers;
  const { image_build_context: context = ".", ...others } = container;
  const configuration = {
    ...raw,
    name: workerName(edge),
    main: from(raw.main),
    vars: { ...raw.vars, ...vars },
    containers: [
      image === undefined
        ? { ...others, image: from(container.image), image_build_context: from(context) }
        : { ...others, image },
    ],
    durable_objects: {
      bindings: raw.durable_objects.bindings.map((each) =>
        each.script_name === undefined ? each : { ...each, script_name: edge },
      ),
    },
  };
  const file = join(root, ".build", "container", "wrangler.json");
  await mkdir(dirname(file), { recursive: true });
  await writeFile(file, JSON.stringify(configuration, undefined, 2));
  return file;
}

interface WorkerConfiguration {
  main: string;
  vars?: Record<string, string>;
  containers: { image: string; image_build_context?: string }[];
  durable_objects: { bindings: { name: string; class_name: string; script_name?: string }[] };
}
