/** An operator sees, retries and cancels waiting jobs and jobs that changed code has blocked, on the command line. */
import { createHash } from "node:crypto";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test, vi } from "vitest";
import { callerOf } from "../../../core/author/caller.ts";
import { run, until } from "../../../testing/stack/program.ts";
import { bearerBindings, callerAt } from "../../auth/support.ts";
import { operatorAt, startOperated } from "../support.ts";

vi.setConfig({ testTimeout: 250_000 });

const TOKEN = "operator-token-of-olga";

test("the overview shows what jobs wait for and which kinds no worker takes; blocked jobs go on with the old code or are cancelled; a caller is blocked", async () => {
  await using cleanup = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), "brewing-"));
  cleanup.defer(() => rm(folder, { recursive: true, force: true }));
  const env: Record<string, string> = { FOLDER: folder };
  const sha256 = createHash("sha256").update(TOKEN).digest("hex");
  const bindings = {
    ...bearerBindings({ ada: "token-of-ada" }),
    WAIT_SECONDS: "1",
    OPERATOR_TOKENS: JSON.stringify([{ name: "olga", sha256 }]),
  };
  const base = "test/operate/brewing/brewing";
  const programs = { edge: `${base}-edge.ts`, worker: `${base}-worker.ts` };
  const stack = cleanup.use(await startOperated({ env, bindings, programs }));
  const [worker] = stack.workers;
  const operator = operatorAt(stack.origin, TOKEN);
  const ada = callerAt(stack.url, "token-of-ada");
  const { key } = await callerOf("ada");
  const operate = async (...args: string[]) => {
    const options = { args: ["operate", ...args, "--url", stack.origin, "--json"], env: { OPERATOR_TOKEN: TOKEN } };
    await using program = run("cli/main.ts", options);
    expect(await program.exited, program.output()).toMatchObject({ exitCode: 0 });
    return JSON.parse(program.output());
  };
  const waits = async (): Promise<string[]> =>
    (await operator.get("overview")).waits.map(
      ({ kind, state, n }: { kind: string; state: string; n: number }) => `${n} ${kind} ${state}`,
    );
  const start = (tool: string, cup: string) => ada.call(tool, { cup });
  const statusOf = async (job: string) => (await ada.call("probe_status", { job_names: [job] })).statuses[0].status;
  const becomes = async (code: string) => {
    await worker?.end();
    env.CODE = code;
    await worker?.start();
  };

  await Promise.all([start("brew", "green"), start("brew", "black"), start("brew", "spilt"), start("serve", "red")]);
  const all = ["1 serve job", "4 brew answer"];
  await until("the overview to show what all jobs wait for", async () => `${(await waits()).sort()}` === `${all}`);

  await Promise.all([start("wash", "green"), start("dry", "green")]);

  await becomes("changed");
  const answer = { question: "how", answer: { strong: true } };
  for (const cup of ["green", "black"]) await ada.call("answer_question", { job_name: `brew_${cup}`, ...answer });
  await until("both to be blocked", async () => (await waits()).includes("2 brew blocked"));
  const { alerts } = await operate("overview");
  expect(alerts).toContainEqual(expect.objectContaining({ name: "jobs-blocked", says: "blocked: 2 of brew" }));
  const { wait } = await operate("job", `${key}brew_green`);
  expect(wait).toMatchObject({ state: "blocked", says: expect.stringContaining("heat") });
  const ended = await operate("cancel", `${key}brew_black`);
  expect(ended.outcomes).toEqual({ [`${key}brew_black`]: "it is cancelled" });
  expect(await operate("job", `${key}brew_black`)).toMatchObject({ status: "cancelled", error: expect.any(String) });
  expect(await waits()).toContain("1 brew blocked");

  await becomes("first");
  const blocked = ["retry", "--state", "blocked", "--kind", "brew", "--caller", "ada"];
  const counted = await operate(...blocked);
  expect(counted).toMatchObject({ count: 1, jobs: [{ job: `${key}brew_green` }] });
  expect(await operate("retry", "--apply", `${counted.preview}`)).toMatchObject({ total: 1, done: 1 });
  const { results } = await ada.call("await_result", { job_names: ["brew_green"] });
  expect(results).toMatchObject({ brew_green: { strong: true } });
  expect(await statusOf("brew_black")).toBe("cancelled");

  await operate("cancel", `${key}brew_spilt`);
  expect(await statusOf("brew_spilt")).toBe("cancelled");
  const poured = () => readFile(join(folder, "poured"), "utf8").catch(() => undefined);
  expect(await until("it to be poured away", poured)).toBe("spilt");

  await operate("block", "ada");
  await until("ada to be refused", () =>
    statusOf("brew_green")
      .then(() => false)
      .catch(() => true),
  );
  await operate("unblock", "ada");
  await until("ada to be admitted again", () => statusOf("brew_green").catch(() => undefined));
  // Workers are connected and have slots, but none of them takes these two kinds.
  const untaken = await until(
    "an alert that two kinds are not taken",
    async () => {
      const { alerts } = await operator.get("overview");
      const said = alerts.find(({ name }: { name: string }) => name === "not-taken")?.says;
      return said?.includes("wash") && said.includes("dry") ? said : undefined;
    },
    120_000,
  );
  expect(untaken).toBe(`no worker takes dry (worker group ${stack.group}), wash (worker group laundry)`);
  expect((await waits()).filter((each) => each.endsWith("worker")).sort()).toEqual(["1 dry worker", "1 wash worker"]);
  await operate("cancel", `${key}dry_green`);
  await operate("cancel", `${key}wash_green`);
  expect((await operate("overview")).alerts.map(({ name }: { name: string }) => name)).not.toContain("not-taken");

  const { entries } = await operator.get("audit-log", { after: "0" });
  expect(entries.map(({ who, what }: { who: string; what: string }) => `${who}: ${what}`)).toEqual(
    expect.arrayContaining(
      ["cancel", "retry", "block", "unblock"].flatMap((what) => [`olga: ${what}`, `olga: ${what}: done`]),
    ),
  );
});
