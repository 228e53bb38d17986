/** Kinds of jobs with their own worker group. */
import { expect, test } from "vitest";
import { run } from "../../../testing/stack/program.ts";
import { ownGroup, startWorker } from "../../../testing/stack/worker-process.ts";
import { startResonate } from "../../support/resonate.ts";

const script = "test/worker/scripts/grouped-worker.ts";

test("each job is run by a worker of its kind's group, however it is started", async () => {
  await using resonate = await startResonate();
  const { group, namespace, env } = ownGroup();
  const settings = { ...resonate.env, ...env, HEAVY_GROUP: `${group}.heavy` };
  await using ours = await startWorker(settings, { script });
  await using _heavy = await startWorker({ ...settings, WORKER_GROUP: `${group}.heavy` }, { script });
  const ids = [1, 2, 3, 4].map((n) => `${namespace}root_${n}`);
  for (const [i, id] of ids.entries()) await resonate.start({ id, func: "root", args: { n: i + 1 }, group });
  for (const id of ids) {
    const { value } = await resonate.settled(id, 60_000);
    expect(value.data).toEqual(["the deployment's", `${group}.heavy`, "the deployment's"]);
  }
  expect(ours.logs()).toContainEqual(
    expect.objectContaining({ kinds: ["heavy"], msg: "these kinds are run by workers of other groups" }),
  );
});

test("a worker that would run none of its kinds does not start, and says why", async () => {
  await using worker = run(script, { env: { WORKER_GROUP: "nobody", HEALTH_PORT: "0" } });
  expect(await worker.exited).toMatchObject({ exitCode: 1 });
  expect(worker.logs().at(-1)).toMatchObject({
    msg: "cannot start",
    reason: expect.stringContaining("none of its kinds is of that group: leaf, heavy, root"),
  });
});
