import type { IncomingMessage, ServerResponse } from "node:http";
import { text } from "node:stream/consumers";
import { afterEach, describe, expect, test } from "vitest";
import { type HttpServer, serveHttp } from "../../../testing/stack/http-server.ts";
import { ResonateClient } from "./client.ts";
import { ResonateRefused, ResonateUnavailable } from "./failures.ts";
import { type Message, PROTOCOL_VERSION } from "./protocol.ts";

let server: HttpServer | undefined;
afterEach(() => server?.[Symbol.asyncDispose]());

/** Starts a server that answers as `answer` does, and returns a client of it. `options` are the client's, besides the address. */
async function clientOf(
  answer: (res: ServerResponse, body: string, req: IncomingMessage) => void,
  options: Partial<ConstructorParameters<typeof ResonateClient>[0]> = {},
): Promise<ResonateClient> {
  server = await serveHttp(async (req, res) => answer(res, await text(req), req));
  return new ResonateClient({ url: `${server.url}/`, ...options });
}

const envelope = (status: number, data: unknown = "") =>
  JSON.stringify({ kind: "promise.get", head: { corrId: "1", status, version: PROTOCOL_VERSION }, data });

const promise = { id: "tea", state: "pending", param: {}, value: {}, tags: {}, timeoutAt: 9e12, createdAt: 1 };

describe("a request", () => {
  test("carries version, token and origin, and each request inside it has a head of its own", async () => {
    let sent: unknown;
    const client = await clientOf(
      (res, body) => {
        sent = JSON.parse(body);
        res.end(envelope(200, {}));
      },
      { token: "secret" },
    );
    const actions = [{ kind: "promise.register_callback" as const, data: { awaited: "tea:1", awaiter: "tea" } }];
    expect(await client.send("task.suspend", { id: "tea", version: 2, actions }, { origin: "tea" })).toEqual({
      status: 200,
      data: {},
    });
    expect(sent).toEqual({
      kind: "task.suspend",
      head: { corrId: expect.any(String), version: PROTOCOL_VERSION, auth: "secret", "resonate:origin": "tea" },
      data: { id: "tea", version: 2, actions: [{ head: expect.any(Object), ...actions[0] }] },
    });
  });

  test.each([300, 404, 409, 422])("is answered with %s, which is not a failure", async (status) => {
    const client = await clientOf((res) => res.writeHead(status).end(envelope(status, "so it is")));
    expect(await client.send("promise.get", { id: "tea" })).toEqual({ status, data: "so it is" });
  });

  test.each([400, 401, 403, 413])(
    "that is refused with %s is not sent again, even with patience left",
    async (status) => {
      let asked = 0;
      const client = await clientOf((res) => {
        asked += 1;
        res.writeHead(status).end(status === 413 ? "too large" : envelope(status));
      });
      const refused = client.send("promise.get", { id: "tea" }, { retryForMs: 5_000 });
      await expect(refused).rejects.toThrow(ResonateRefused);
      expect(asked).toBe(1);
    },
  );

  test.each<[string, (res: ServerResponse) => unknown, number | undefined]>([
    ["with 500", (res) => res.writeHead(500).end(envelope(500)), 500],
    ["with 429", (res) => res.writeHead(429).end(), 429],
    [
      "with half an answer",
      (res) => res.writeHead(200, { "content-length": 500 }).write("{", () => res.destroy()),
      undefined,
    ],
    ["with a lost connection", (res) => res.destroy(), undefined],
  ])("that is answered %s is sent again, and counted each time", async (_what, fail, status) => {
    const statuses: (number | undefined)[] = [];
    const onRequest = (_kind: string, status: number | undefined) => statuses.push(status);
    const client = await clientOf((res) => (statuses.length < 2 ? fail(res) : res.end(envelope(200, { promise }))), {
      onRequest,
    });
    expect(await client.call({ kind: "promise.get", data: { id: "tea" } })).toEqual(promise);
    expect(statuses).toEqual([status, status, 200]);
  });

  test("that times out is sent again only while patience lasts", async () => {
    let asked = 0;
    const client = await clientOf((res) => void (++asked > 6 && res.end(envelope(200, { promise }))), { timeout: 250 });
    await expect(client.send("promise.get", { id: "tea" })).rejects.toThrow("did not answer in time");
    expect(asked).toBe(1);
    await expect(client.send("promise.get", { id: "tea" }, { retryForMs: 600 })).rejects.toThrow(ResonateUnavailable);
    expect(await client.send("promise.get", { id: "tea" }, { retryForMs: 20_000 })).toMatchObject({ status: 200 });
  });

  test("for a search that times out fails with advice on what is quicker", async () => {
    const client = await clientOf(() => {}, { timeout: 50 });
    await expect(client.search({ tags: {} })).rejects.toThrow("look for one by its name");
  });
});

describe("a connection", () => {
  const stream = (res: ServerResponse) => res.writeHead(200, { "content-type": "text/event-stream" }).flushHeaders();
  const event = (data: unknown) => `data: ${typeof data === "string" ? data : JSON.stringify(data)}\n\n`;

  test("passes on dispatches and settlements, and ignores all other messages", async () => {
    const settled = { ...promise, state: "resolved" };
    const client = await clientOf(
      (res, _body, req) => {
        expect([req.url, req.headers.authorization]).toEqual(["/poll/a%2Fb/me", "Bearer secret"]);
        stream(res);
        for (const odd of ["{", "null", "[]", '"execute"']) res.write(event(odd));
        for (const odd of [{}, { task: null }, { task: { id: 1, version: 1 } }])
          res.write(event({ kind: "execute", data: odd }));
        for (const odd of [{ promise: {} }, { promise: { ...promise, tags: null } }, null])
          res.write(event({ kind: "unblock", data: odd }));
        res.write(event({ kind: "melt", data: { promise } }));
        res.write(event({ kind: "execute", head: {}, data: { task: { id: "tea", version: 3 } } }));
        res.end(event({ kind: "unblock", data: { promise: settled } }));
      },
      { token: "secret" },
    );
    const messages: Message[] = [];
    const { signal } = new AbortController();
    const channel = await client.connections.open({
      group: "a/b",
      id: "me",
      onMessage: (message) => messages.push(message),
      signal,
    });
    expect(await channel.closed).toBeUndefined();
    expect(messages).toEqual([
      { kind: "execute", task: { id: "tea", version: 3 } },
      { kind: "unblock", promise: settled },
    ]);
  });

  const opening = { group: "edge", id: "me", onMessage: () => {}, signal: new AbortController().signal };

  test("that does not open in time, or is not an event stream, counts as unavailable", async () => {
    const hanging = await clientOf(() => {}, { timeout: 100 });
    await expect(hanging.connections.open(opening)).rejects.toThrow("did not answer in time");
    const page = await clientOf((res) => res.writeHead(200, { "content-type": "text/html" }).end("<html></html>"));
    await expect(page.connections.open(opening)).rejects.toMatchObject({ name: "ResonateUnavailable", status: 200 });
  });

  test("that is refused, lost or silent is opened again, until the listener aborts", async () => {
    const over = new AbortController();
    let attempts = 0;
    const client = await clientOf((res) => {
      attempts += 1;
      if (attempts === 1) return res.writeHead(503).end();
      stream(res);
      if (attempts === 2) return res.end();
      if (attempts === 3) return res.destroy();
      // Comments only show that the connection is alive, and keep it open for longer than silence would.
      if (attempts === 4) {
        let comments = 0;
        const timer = setInterval(() => (++comments < 8 ? res.write(": \n\n") : clearInterval(timer)), 60);
        return;
      }
      return setTimeout(() => over.abort(), 50);
    });
    const log: unknown[] = [];
    let connectedAt = 0;
    await client.connections.listen({
      ...opening,
      signal: over.signal,
      silence: 250,
      onConnect: () => {
        connectedAt = attempts;
        log.push("connected");
      },
      onDisconnect: (reason) =>
        log.push(reason?.message.startsWith("nothing came") ? "silent" : (reason?.name ?? "ended")),
    });
    const lost = expect.stringMatching(/Error$/);
    expect(log).toEqual([
      "ResonateUnavailable",
      ...["connected", "ended"],
      ...["connected", lost],
      ...["connected", "silent"],
      ...["connected", "ended"],
    ]);
    expect([attempts, connectedAt]).toEqual([5, 5]);
  });

  describe("to a server that writes nothing by itself", () => {
    const silence = 100;

    /** Listens to a server that answers as `answer` does, and returns what happened until it was `enough`. */
    async function listened(answer: (res: ServerResponse, n: number) => unknown, enough: (log: unknown[]) => boolean) {
      const over = new AbortController();
      const log: unknown[] = [];
      const note = (what: unknown) => {
        log.push(what);
        if (enough(log)) over.abort();
      };
      const ids: (string | undefined)[] = [];
      const client = await clientOf(
        (res, _body, { url }) => {
          ids.push(url?.split("/").at(-1));
          answer(res, ids.length);
          res.on("close", () => note(`closed ${ids.indexOf(url?.split("/").at(-1)) + 1}`));
        },
        { timeout: 1_000 },
      );
      await client.connections.listen({
        ...opening,
        signal: over.signal,
        silence,
        onMessage: (message) => note(message.kind === "execute" && message.task.id),
        onConnect: (address) => note(address),
        onDisconnect: (reason) => note(reason?.message ?? "ended"),
      });
      return { log, ids };
    }

    test("is replaced after a silence by one with another id, and still read until that is open", async () => {
      let first: ServerResponse | undefined;
      const { log } = await listened(
        (res, n) => {
          first ??= res;
          if (n === 1) return stream(res);
          if (n > 2) return undefined;
          setTimeout(() => {
            first?.write(event({ kind: "execute", head: {}, data: { task: { id: "late", version: 1 } } }));
            stream(res);
          }, 50);
          return setTimeout(
            () => res.write(event({ kind: "execute", head: {}, data: { task: { id: "new", version: 1 } } })),
            100,
          );
        },
        (log) => log.includes("new"),
      );
      expect(log.slice(0, 4).toSorted()).toEqual(["late", "new", "poll://uni@edge/me", "poll://uni@edge/me.1"]);
    });

    test("is lost when its replacement does not open", async () => {
      const { log } = await listened(
        (res, n) => n === 1 && stream(res),
        (log) => log.length > 2,
      );
      expect(log).toContain("poll://uni@edge/me");
      expect(log).toContain("it did not answer in time");
    });

    test("is kept when the server has no room for its replacement", async () => {
      const { log, ids } = await listened(
        (res, n) => {
          if (n === 1) {
            stream(res);
            return setTimeout(
              () => res.write(event({ kind: "execute", data: { task: { id: "tea", version: 1 } } })),
              500,
            );
          }
          return res.writeHead(503).end();
        },
        (log) => log.includes("tea"),
      );
      expect(log.filter((what) => !String(what).startsWith("closed"))).toEqual(["poll://uni@edge/me", "tea", "ended"]);
      expect(ids.length).toBeGreaterThan(2);
    });
  });
});
