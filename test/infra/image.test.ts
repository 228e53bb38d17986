import { access, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DockerfileParser } from "dockerfile-ast";
import { validate } from "dockerfile-utils";
import { execa } from "execa";
import { expect, test } from "vitest";
import { startChild } from "../../cli/process/child.ts";
import packageJson from "../../package.json" with { type: "json" };
import { freePort } from "../../testing/stack/port.ts";
import { until, watch } from "../../testing/stack/program.ts";
import { ownGroup } from "../../testing/stack/worker-process.ts";
import { startResonate } from "../support/resonate.ts";
import { buildInFolder } from "./dockerfile.ts";

const DOCKERFILE = "worker/Dockerfile";

test("the worker's Dockerfile has no lint errors, one pinned Node release and no root user", async () => {
  const text = await readFile(DOCKERFILE, "utf8");
  expect(validate(text)).toEqual([]);
  const dockerfile = DockerfileParser.parse(text);
  const images = dockerfile.getFROMs().map((from) => from.getImage());
  expect(images.length).toBeGreaterThan(1);
  expect(new Set(images.map((image) => image?.split("@")[0]))).toEqual(
    new Set([`node:${packageJson.config.node}-slim`]),
  );
  for (const image of images) expect(image).toMatch(/@sha256:[0-9a-f]{64}$/);
  const ours = JSON.parse(await readFile("infra/node/package.json", "utf8")).optionalDependencies;
  expect(new Set(Object.values(ours))).toEqual(new Set([packageJson.config.node]));
  const users = dockerfile.getInstructions().filter((instruction) => instruction.getKeyword() === "USER");
  expect(users.map((user) => user.getArgumentsContent())).toEqual(["1000:1000"]);
});

test("its steps in a clean folder make a worker that runs jobs, reports its health and stops on SIGTERM", async () => {
  const target = await mkdtemp(join(tmpdir(), "image-"));
  try {
    const { root, workdir, env, command, healthcheck } = await buildInFolder(DOCKERFILE, process.cwd(), target);
    const app = join(root, workdir);
    for (const name of Object.keys(packageJson.devDependencies)) {
      await expect(access(join(app, "node_modules", name)), name).rejects.toThrow("ENOENT");
    }

    await using resonate = await startResonate();
    const { group, namespace, env: own } = ownGroup();
    const port = `${await freePort()}`;
    // The environment of a container, with loopback instead of every address of this machine.
    const variables = {
      PATH: process.env.PATH,
      ...env,
      ...resonate.env,
      ...own,
      HEALTH_HOST: "127.0.0.1",
      HEALTH_PORT: port,
    };
    const [program, script = ""] = command;
    expect(program).toBe("node");
    await using worker = watch(startChild(process.execPath, [join(app, script)], { env: variables, grace: 5_000 }));
    await until("the worker to be ready", () => worker.logs().find(({ msg }) => msg === "ready"));

    const id = `${namespace}timer_tea`;
    const timer = { timer_name: "tea", fires_at: new Date(Date.now() + 1_000).toISOString() };
    await resonate.start({ id, func: "timer", args: timer, group });
    expect(await resonate.settled(id)).toMatchObject({ state: "resolved", value: { data: "complete" } });

    const [check, ...rest] = healthcheck;
    expect(check).toBe("bash");
    const healthy = () => execa("bash", rest, { env: variables, reject: false });
    expect((await healthy()).exitCode).toBe(0);
    worker.signal("SIGTERM");
    expect(await worker.exited).toEqual({ exitCode: 0, signal: undefined });
    expect((await healthy()).exitCode).toBe(1);

    // The image names no server, so its user has to.
    const untold = { ...variables, RESONATE_URL: "" };
    await using lost = watch(startChild(process.execPath, [join(app, script)], { env: untold, grace: 5_000 }));
    expect(await lost.exited).toMatchObject({ exitCode: 1 });
    expect(lost.output()).toContain("RESONATE_URL: must be set in a container");
  } finally {
    await rm(target, { recursive: true });
  }
});
