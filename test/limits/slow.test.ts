/** A client that sends slowly or guesses tokens delays nobody, at the edge or at the account's Resonate server. */
import { connect } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createTestHarness } from "wrangler";
import { type EdgeProcess, startEdge } from "../../cli/launcher/local-edge.ts";
import { newToken } from "../../cli/static-token.ts";
import { bearerBindings, callerAt } from "../auth/support.ts";
import { send } from "./support.ts";

const [worker, caller] = [newToken(), newToken()];
const RESONATE_TOKENS = JSON.stringify([{ name: "one", sha256: worker.sha256 }]);
const SELF = { RESONATE_PUBLIC: "1", RESONATE_TOKENS, TASK_KEY: "k".repeat(32) };

describe("a body that arrives byte by byte", () => {
  let edge: EdgeProcess;
  beforeAll(async () => {
    edge = await startEdge({ port: 0, bindings: { ...SELF, ...bearerBindings({ ada: caller.token }) } });
  });
  afterAll(() => edge?.[Symbol.asyncDispose]());

  /** Sends a body piece by piece until the answer begins. Resolves to the answer's first line. */
  function trickle(path: string, headers: Record<string, string>, piece = "["): Promise<string> {
    return new Promise((resolve, reject) => {
      const socket = connect(edge.port, "127.0.0.1");
      const all = { host: `127.0.0.1:${edge.port}`, "content-type": "application/json", accept: "*/*", ...headers };
      const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
      socket.write(`POST ${path} HTTP/1.1\r\n${lines.join("")}\r\n`);
      const sending = setInterval(() => socket.write(piece), 500);
      socket.setEncoding("utf8").once("data", (text: string) => {
        clearInterval(sending);
        socket.destroy();
        resolve(text.split("\r\n", 1)[0] ?? "");
      });
      socket.on("error", reject).on("close", () => clearInterval(sending));
    });
  }

  const LENGTH = { "content-length": "100000" };
  const CHUNKED = { "transfer-encoding": "chunked" };
  const CHUNK = "1\r\n[\r\n";
  const known = { authorization: `Bearer ${caller.token}` };

  test("is given up, at once if a stranger sends it, while others are served", async () => {
    const slow = [
      trickle("/mcp", { ...known, ...LENGTH }),
      trickle("/mcp", { ...known, ...CHUNKED }, CHUNK),
      trickle("/resonate", LENGTH),
      trickle("/resonate", { ...CHUNKED, authorization: `Bearer ${worker.token}` }, CHUNK),
    ];
    for (const path of ["/mcp", "/pages/session"]) {
      expect(await trickle(path, LENGTH)).toMatch(/^HTTP\/1.1 (401|403) /);
    }
    const ada = callerAt(`${edge.url}/mcp`, caller.token);
    expect(await ada.call("set_timer", { timer_name: "meanwhile", seconds: 600 })).toMatchObject({ status: "running" });
    for (const answer of slow) expect(await answer).toMatch(/^HTTP\/1.1 408 /);
    expect((await fetch(`${edge.url}/health`)).status).toBe(200);
  });
});

describe("on Cloudflare, at /resonate, a client that guesses tokens", () => {
  const vars = { ...SELF, LOG_LEVEL: "silent", AUTH_MODE: "none", RUNNER: "" };
  const server = createTestHarness({ workers: [{ configPath: "./wrangler.toml", vars }] });
  let url: string;
  beforeAll(async () => {
    url = new URL("/resonate", (await server.listen()).url).href;
  });
  afterAll(() => server.close());

  const from = (address: string) => ({ "cf-connecting-ip": address });
  const call = (auth: string) => ({
    kind: "promise.get",
    head: { corrId: "1", version: "2026-04-01", auth },
    data: { id: "none" },
  });
  const lines = { "content-type": "application/x-ndjson" };
  let clients = 0;

  test.each([
    ["a call", (address: string) => send(url, { headers: from(address), body: call(`guess ${Math.random()}`) })],
    ["a malformed call", (address: string) => send(url, { headers: from(address), body: "{" })],
    [
      "an unknown operation",
      (address: string) => send(url, { headers: from(address), body: { ...call("x"), kind: "none" } }),
    ],
    [
      "several calls in one request",
      (address: string) => send(url, { headers: { ...from(address), ...lines }, body: "{}\n{}\n{}" }),
    ],
    [
      "a connection",
      (address: string) =>
        send(`${url}/poll/workers/1`, { method: "GET", headers: { ...from(address), authorization: "Bearer x" } }),
    ],
    [
      "an operator's request",
      (address: string) =>
        send(`${url}/operate/usage`, { method: "GET", headers: { ...from(address), authorization: "Bearer x" } }),
    ],
    ["an unknown path", (address: string) => send(`${url}/x`, { method: "GET", headers: from(address) }), 404],
    ["a wrong method", (address: string) => send(url, { method: "GET", headers: from(address) }), 404],
  ] as [string, (address: string) => Promise<{ status: number }>, number?][])(
    "by %s has a hundred tries a minute, and clients at other addresses have their own",
    async (_what, ask, status = 401) => {
      clients += 1;
      const address = `192.0.2.${clients}`;
      const statuses: number[] = [];
      for (let n = 0; n < 110 && statuses.at(-1) !== 429; n++) statuses.push((await ask(address)).status);
      expect(statuses).toEqual([...Array(100).fill(status), 429]);
      const right = { body: call(worker.token) };
      expect((await send(url, { headers: from(address), ...right })).status).toBe(429);
      expect((await send(url, { headers: from("198.51.100.1"), ...right })).status).toBe(404);
    },
  );

  test("a body of 15 MB is refused as too large, declared or not", async () => {
    const body = "x".repeat(15_000_000);
    const declared = await fetch(url, { method: "POST", headers: from("192.0.2.200"), body });
    expect(declared.status).toBe(413);
    const stream = new Blob([body]).stream();
    const init = { method: "POST", headers: from("192.0.2.200"), body: stream, duplex: "half" };
    expect((await fetch(url, init as RequestInit)).status).toBe(413);
  });
});
