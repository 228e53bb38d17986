/** The name of a call's job, as the caller gives it. */
import { expect, test } from "vitest";
import type { CallContext } from "../core/tools/tool.ts";
import type { CallArgs } from "./call-job.ts";
import { wrapServer } from "./index.ts";
import type { Snapshot } from "./snapshot.ts";

/** The names of the jobs of calls of the tool `pay` under these names. */
async function jobsOf(...names: string[]): Promise<string[]> {
  const snapshot: Snapshot = {
    server: { name: "acme", version: "1" },
    revision: "2025-11-25",
    resources: false,
    tools: [{ name: "pay", inputSchema: { type: "object" } }],
    lists: { prompts: [], resources: [], resourceTemplates: [] },
    offers: [],
  };
  const tools = wrapServer({ name: "acme", url: "https://acme.example" }).tools(snapshot);
  const pay = tools.find(({ name }) => name === "pay");
  const create = async (_job: object, name: string, args: CallArgs) => ({ name, args, state: "pending" });
  const join = (promise: object) => Promise.resolve(promise);
  const context = { store: { create, join }, now: 0 } as unknown as CallContext;
  const promises = names.map((name) => pay?.start?.({ amount: 1, job_name: name }, context));
  return (await Promise.all(promises)).map((promise) => (promise as { name: string }).name);
}

test.each(["order", "order:42", "100%3A", "a~2", "line\u2028", "end "])(
  "a call under the whole job name of the call %j finds that call",
  async (name) => {
    const [job = ""] = await jobsOf(name);
    expect(job).toMatch(/^acme\.pay\../);
    expect(await jobsOf(job, `${job}~2`)).toEqual([job, job]);
  },
);

test("a call's name is one name, in whichever form its characters come, so that the call is sent once", async () => {
  const [job = ""] = await jobsOf("cafe\u0301");
  expect(await jobsOf("café", job.normalize("NFD"))).toEqual([job, job]);
});

test("a call's name has at most 100 characters, without the beginning and the escapes of the whole job name", async () => {
  const longest = ":".repeat(100);
  const [job = ""] = await jobsOf(longest);
  expect(await jobsOf(job)).toEqual([job]);
  for (const name of [`${longest}:`, `${job}:`, "x".repeat(101)]) {
    await expect(jobsOf(name)).rejects.toThrow("job_name must be a text of up to 100 characters");
  }
});
