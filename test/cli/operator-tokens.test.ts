/** Operators' commands at servers that require a token: which token may do what, and how the commands report a refusal. */
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { type EdgeProcess, startEdge } from "../../cli/launcher/local-edge.ts";
import { newToken } from "../../cli/static-token.ts";
import { callerOf } from "../../core/author/caller.ts";
import { startRecordId } from "../../core/resonate/ids.ts";
import { run } from "../../testing/stack/program.ts";
import { type Resonate, resonateAt, startResonate } from "../support/resonate.ts";
import { type ProtectedResonate, startProtectedResonate } from "./protected-resonate.ts";

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

const NAMESPACE = "prod/";

async function command(env: Record<string, string>, ...args: string[]) {
  const unset = { RESONATE_URL: "", RESONATE_TOKEN: "", OPERATOR_TOKEN: "", RESONATE_NAMESPACE: "" };
  await using program = run("cli/main.ts", { args, env: { ...unset, RESONATE_GROUP: "prod", ...env } });
  const { exitCode } = await program.exited;
  return { exitCode, output: program.output().trim() };
}

/** Pauses a kind, lists it as paused, resumes it, and retries a job. All these commands must succeed. */
async function operate(env: Record<string, string>, ...options: string[]) {
  const ask = async (...args: string[]) => {
    const { exitCode, output } = await command(env, ...args, ...options);
    expect([exitCode, output]).toEqual([0, expect.any(String)]);
    return output;
  };
  expect(await ask("pause", "timer")).toMatch(/^Jobs of the kind timer are paused since /);
  expect(await ask("jobs")).toMatch(/^timer: 1 under way, 0 blocked, 0 failing, 0 asking, paused since /);
  expect(await ask("resume", "timer")).toBe("Jobs of the kind timer continue.");
  expect(await ask("retry", "timer_tea")).toBe("timer_tea: it is not blocked");
}

/** The output of each command. All of them must fail. */
async function refusals(env: Record<string, string>, commands: string[][]) {
  const answers = await Promise.all(commands.map((args) => command(env, ...args)));
  expect(answers.map(({ exitCode }) => exitCode)).toEqual(commands.map(() => 1));
  return answers.map(({ output }) => output);
}

const startTimer = (resonate: Resonate, namespace = "") =>
  resonate.start({ id: `${namespace}timer_tea`, func: "timer", args: {}, group: "prod" });

describe("the embedded server, with a secret", () => {
  const token = "a secret of this machine";
  let resonate: Resonate;
  beforeAll(async () => {
    resonate = await startResonate({ own: true, token });
    await startTimer(resonate);
  });
  afterAll(() => resonate?.[Symbol.asyncDispose]());

  test("obeys commands with the secret only", async () => {
    await operate(resonate.env);
    const [wrong] = await refusals({ ...resonate.env, RESONATE_TOKEN: "another" }, [["jobs"]]);
    expect(wrong).toBe(
      `The Resonate server at ${resonate.url} does not know the token in RESONATE_TOKEN, or it has expired.`,
    );
    const [none] = await refusals({ RESONATE_URL: resonate.url }, [["pause", "timer"]]);
    expect(none).toBe(
      `The Resonate server at ${resonate.url} asks for a token: set RESONATE_TOKEN, or OPERATOR_TOKEN with --url.`,
    );
  });
});

describe("a server that checks signed tokens", () => {
  let resonate: ProtectedResonate;
  beforeAll(async () => {
    resonate = await startProtectedResonate();
    const admin = await resonate.token({ prefix: "" });
    await startTimer(resonateAt(resonate.url, undefined, admin), NAMESPACE);
  });
  afterAll(() => resonate?.[Symbol.asyncDispose]());

  test("lets an operator's token do everything; a namespace's token may not search or touch another namespace", async () => {
    const address = { RESONATE_URL: resonate.url, RESONATE_NAMESPACE: NAMESPACE };
    await operate({ ...address, RESONATE_TOKEN: await resonate.token({ prefix: "", role: "operator" }) });
    const own = { ...address, RESONATE_TOKEN: await resonate.token({ prefix: NAMESPACE, role: "worker" }) };
    expect((await command(own, "retry", "timer_tea")).output).toBe("timer_tea: it is not blocked");
    for (const refusal of await refusals(own, [["jobs"]])) {
      expect(refusal).toMatch(
        / does not let the token in RESONATE_TOKEN search: npm run keys -- --operator creates one/,
      );
    }
    const elsewhere = await refusals({ ...own, RESONATE_NAMESPACE: "test/" }, [
      ["pause", "timer"],
      ["retry", "timer_tea"],
    ]);
    const refusal = `The Resonate server at ${resonate.url} does not let the token in RESONATE_TOKEN touch jobs of the namespace "test/" (RESONATE_NAMESPACE).`;
    expect(elsewhere).toEqual([refusal, refusal]);
    const expiredToken = await resonate.token({ prefix: "", exp: 1 });
    expect((await refusals({ ...address, RESONATE_TOKEN: expiredToken }, [["jobs"]]))[0]).toContain(
      "or it has expired",
    );
  });
});

describe("a deployment with its own Resonate server", () => {
  const [worker, operator] = [newToken(), newToken()];
  const tokenList = ({ sha256 }: { sha256: string }) => JSON.stringify([{ name: "ada", sha256 }]);
  let edge: EdgeProcess;
  let resonate: Resonate;
  beforeAll(async () => {
    const tokens = { RESONATE_TOKENS: tokenList(worker), OPERATOR_TOKENS: tokenList(operator) };
    const own = { RESONATE_PUBLIC: "1", RUNNER: "", RESONATE_GROUP: "prod", RESONATE_NAMESPACE: NAMESPACE, ...tokens };
    edge = await startEdge({ port: 0, bindings: { AUTH_MODE: "none", ...own } });
    resonate = resonateAt(`${edge.url}/resonate`, undefined, worker.token);
    await startTimer(resonate, NAMESPACE);
  });
  afterAll(() => edge?.[Symbol.asyncDispose]());

  test("lets its operator's token do everything; a worker's token may not search or touch another namespace", async () => {
    await operate({ OPERATOR_TOKEN: operator.token, RESONATE_NAMESPACE: NAMESPACE }, "--url", edge.url);
    const own = { RESONATE_URL: resonate.url, RESONATE_TOKEN: worker.token, RESONATE_NAMESPACE: NAMESPACE };
    for (const refusal of await refusals(own, [["jobs"]])) {
      expect(refusal).toMatch(/ search: .*or --url accepts a deployment's operator's\.$/);
    }
    const [elsewhere] = await refusals({ ...own, RESONATE_NAMESPACE: "test/" }, [["resume", "timer"]]);
    expect(elsewhere).toContain('touch jobs of the namespace "test/"');
    const [wrong] = await refusals({ OPERATOR_TOKEN: worker.token }, [["forget", "ada", "--url", edge.url]]);
    expect(wrong).toBe("The server does not know the token in OPERATOR_TOKEN.");
  });

  test("removes a caller's jobs at its operator's command while it runs", async () => {
    const [{ key: hers }, { key: other }] = await Promise.all([callerOf("ada"), callerOf("bob")]);
    const start = (id: string) => resonate.start({ id: NAMESPACE + id, func: "timer", args: {}, group: "prod" });
    for (const id of [`${hers}timer_tea`, `${other}timer_tea`, `weather_1`]) await start(id);
    const record = {
      id: startRecordId(`${NAMESPACE}weather_1`, hers),
      timeoutAt: Date.now() + 60_000,
      param: {},
      tags: {},
    };
    await resonate.call("promise.create", record);
    const forget = (...options: string[]) =>
      command({ OPERATOR_TOKEN: operator.token }, "forget", "ada", "--url", edge.url, ...options);
    // The caller's object may have created a promise for its own record, so there may be 3 promises.
    expect((await forget()).output).toMatch(/^[23] promises of this caller: nothing was removed. Add --apply.$/);
    expect((await forget("--apply")).output).toMatch(/^[23] promises were removed.$/);
    const promises = await Promise.all(
      [`${hers}timer_tea`, startRecordId("weather_1", hers), `${other}timer_tea`, "weather_1"].map((id) =>
        resonate.get(NAMESPACE + id),
      ),
    );
    expect(promises.map((promise) => promise?.state)).toEqual([undefined, undefined, "pending", "pending"]);
    expect((await forget("--apply")).output).toBe("0 promises were removed.");
  });
});
