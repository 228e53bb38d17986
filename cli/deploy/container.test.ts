import { expect, test } from "vitest";
import { chooseContainer, type Situation } from "./container.ts";

const runsIn = (text: string) => [{ name: "RUNS_IN", type: "plain_text", text }];
const secret = (name: string) => ({ name, type: "secret_text" });

/** The choice in this repository, in an account that has Containers, for an image in a registry. */
const choose = (situation: Partial<Situation>) =>
  chooseContainer({
    root: process.cwd(),
    account: { hasContainers: async () => true },
    edge: [],
    worker: undefined,
    isRequested: undefined,
    image: "docker.io/example/worker:1",
    secretsFile: undefined,
    ...situation,
  });

test("a deployment with a server elsewhere leaves its jobs to the workers of that server, after any earlier choice", async () => {
  const url = secret("RESONATE_URL");
  const elsewhere = {
    runsIn: "workers",
    isDeployed: false,
    explanation: expect.stringContaining("RESONATE_URL names"),
  };
  expect(await choose({ edge: [url] })).toMatchObject(elsewhere);
  expect(await choose({ edge: [...runsIn("workers"), url], worker: [url] })).toMatchObject(elsewhere);
  // The first deployment recorded the choice and failed before the container existed.
  expect(await choose({ edge: [...runsIn("container"), url] })).toMatchObject(elsewhere);
});

test("a container that runs jobs of a server elsewhere is deployed again", async () => {
  const url = secret("RESONATE_URL");
  const edge = [...runsIn("container"), url];
  expect(await choose({ edge, worker: [url] })).toMatchObject({ runsIn: "container", isDeployed: true });
});

test("only --no-container moves jobs out of an existing container", async () => {
  const current = { edge: [...runsIn("container"), secret("ENCRYPTION_KEYS")], worker: [] };
  const without = { account: { hasContainers: async () => false } };
  await expect(choose(current)).rejects.toThrow("it needs ENCRYPTION_KEYS as the edge has it");
  await expect(choose({ ...current, ...without })).rejects.toThrow("end the container with --no-container");
  await expect(choose({ ...current, root: "/nowhere" })).rejects.toThrow("end the container with --no-container");
  expect(await choose({ ...current, isRequested: false })).toMatchObject({ runsIn: "workers" });
  // Without a container there is nothing to lose.
  expect(await choose({ ...current, worker: undefined })).toMatchObject({ runsIn: "workers" });
});
