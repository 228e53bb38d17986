/** Two isolates of one deployment, on one Resonate server: a caller has the same jobs and limits at both. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { callerOf } from "../../core/author/caller.ts";
import { until } from "../../testing/stack/program.ts";
import { type AuthorizationServer, startAuthorizationServer } from "../auth/authorization-server.ts";
import { callerAt } from "../auth/support.ts";
import { type Resonate, startResonate } from "../support/resonate.ts";
import { type Stack, startStack } from "../support/stack.ts";
import { subscribe } from "../tasks/support.ts";

const AUDIENCE = "https://mcp.example/mcp";

let server: AuthorizationServer;
let resonate: Resonate;
let stack: Stack;
let edges: { url: string }[];
beforeAll(async () => {
  server = await startAuthorizationServer(["ada"]);
  resonate = await startResonate();
  const bindings = {
    AUTH_MODE: "oauth",
    OAUTH_ISSUER: server.issuer,
    PUBLIC_URL: "https://mcp.example",
    OAUTH_AUDIENCE: AUDIENCE,
    TASK_KEY: "k".repeat(40),
    MAX_JOBS: "10",
  };
  stack = await startStack({ resonate, workers: 1, bindings, beside: {} });
  edges = [{ url: stack.url }, { url: stack.beside }];
});
afterAll(async () => {
  await stack?.[Symbol.asyncDispose]();
  await resonate?.[Symbol.asyncDispose]();
  await server?.[Symbol.asyncDispose]();
});

const tokenOf = (sub: string, seconds = 600) => {
  const iat = Math.floor(Date.now() / 1_000);
  return server.sign({ iss: server.issuer, aud: AUDIENCE, sub, iat, exp: iat + seconds, scope: "mcp" });
};
const at = async (sub: string) => {
  const token = await tokenOf(sub);
  return edges.map(({ url }) => callerAt(url, token)) as [ReturnType<typeof callerAt>, ReturnType<typeof callerAt>];
};

test("a caller can see, await and cancel its job at both isolates, and no other caller can at either", async () => {
  const [here, there] = await at("ada");
  const { taskId } = await here.tasks.call("timer", { timer_name: "hers", seconds: 3_600 });
  const name = "timer_hers";
  const { key } = await callerOf(JSON.stringify([server.issuer, "ada"]));
  for (const bob of await at("bob")) {
    for (const guess of [name, `${key}${name}`, `../${key}${name}`, `${stack.namespace}${name}`, `${name}~1`]) {
      expect((await bob.call("probe_status", { job_names: [guess] })).statuses[0].status).toBe("not_found");
      expect((await bob.call("cancel_job", { job_names: [guess] })).cancelled).toEqual([]);
    }
    expect((await bob.call("list_jobs")).jobs).toEqual([]);
    await expect(bob.tasks.get(taskId)).rejects.toThrow();
    await expect(bob.tasks.cancel(taskId)).rejects.toThrow();
  }
  expect((await there.tasks.get(taskId)).status).toBe("working");
  expect((await there.call("list_jobs")).jobs).toMatchObject([{ job_name: name, status: "running" }]);
  const waiting = here.call("await_result", { job_names: [name], timeout_seconds: 60 });
  expect((await there.call("cancel_job", { job_names: [name] })).cancelled).toEqual([name]);
  expect(await waiting).toMatchObject({ errors: { [name]: expect.stringContaining("cancelled") }, running: [] });
});

test("a caller's limit of jobs applies to both isolates together", async () => {
  const cy = await at("cy");
  const starts = Array.from({ length: 24 }, (_, n) =>
    (cy[n % 2] ?? cy[0]).call("set_timer", { timer_name: `t${n}`, seconds: 3_600 }),
  );
  const started = (await Promise.allSettled(starts)).filter(({ status }) => status === "fulfilled").length;
  expect(started).toBe(10);
});

test("a stream ends at either isolate when its token expires, and the job goes on", async () => {
  const [here] = await at("dora");
  const { taskId } = await here.tasks.call("timer", { timer_name: "long", seconds: 3_600 });
  const short = await tokenOf("dora", 4);
  const streams = await Promise.all(edges.map(({ url }) => subscribe(url, [taskId], short)));
  await Promise.all(streams.map(({ ended }) => ended));
  // The edge accepts a token for a few seconds after its expiry, because clocks may differ.
  const isRefused = (url: string) =>
    callerAt(url, short)
      .call("list_jobs")
      .then(
        () => false,
        () => true,
      );
  for (const { url } of edges) await until("the token to be refused", () => isRefused(url));
  expect((await here.tasks.get(taskId)).status).toBe("working");
});
