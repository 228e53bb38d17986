/** At the account's own Resonate server, a worker's token gives access to the deployment's namespace and nothing else. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type EdgeProcess, startEdge } from "../../cli/launcher/local-edge.ts";
import { newToken } from "../../cli/static-token.ts";
import { bearerBindings, callerAt } from "../auth/support.ts";
import { type Resonate, resonateAt } from "../support/resonate.ts";
import { send } from "./support.ts";

const OWN = "prod/";
const FOREIGN = "test/victim";
const SECRET = "nobody else's";

const [worker, operator, caller] = [newToken(), newToken(), newToken()];
const listed = ({ sha256 }: { sha256: string }) => JSON.stringify([{ name: "one", sha256 }]);
const value = (text: string) => ({ headers: {}, data: Buffer.from(JSON.stringify(text)).toString("base64") });

let edge: EdgeProcess;
/** The server with the operator's token, which may do everything: it creates what the attacks aim at, and checks it. */
let everything: Resonate;
const own = `${OWN}timer_own`;
const in1h = Date.now() + 3_600_000;
const targeted = (id: string, tags: Record<string, string> = {}) => ({
  id,
  timeoutAt: in1h,
  param: value(SECRET),
  tags: { "resonate:target": "poll://any@nobody", "resonate:branch": id, ...tags },
});

beforeAll(async () => {
  const tokens = { RESONATE_TOKENS: listed(worker), OPERATOR_TOKENS: listed(operator) };
  edge = await startEdge({
    port: 0,
    bindings: {
      RESONATE_PUBLIC: "1",
      RUNNER: "",
      RESONATE_GROUP: "prod",
      RESONATE_NAMESPACE: OWN,
      ...tokens,
      ...bearerBindings({ ada: caller.token }),
      TASK_KEY: "k".repeat(32),
    },
  });
  everything = resonateAt(`${edge.url}/resonate`, undefined, operator.token);
  await everything.call("promise.create", targeted(FOREIGN));
  await everything.call("promise.create", { ...targeted(`${FOREIGN}:1`, { "resonate:branch": FOREIGN }) });
  await everything.call("promise.create", targeted(own));
  await everything.call("schedule.create", {
    id: "test/schedule",
    cron: "0 0 1 1 *",
    promiseId: "test/scheduled.{{.timestamp}}",
    promiseTimeout: 60_000,
    promiseParam: value(SECRET),
    promiseTags: { "resonate:target": "poll://any@nobody" },
  });
});
afterAll(() => edge?.[Symbol.asyncDispose]());

/** The server's answer to a call with a token, as text. */
const said = async (kind: string, data: object, auth: string | undefined = worker.token) => {
  const body = { kind, head: { corrId: "1", version: "2026-04-01", ...(auth !== undefined && { auth }) }, data };
  const { status, text } = await send(`${edge.url}/resonate`, { body });
  return { status, text };
};
const inner = (kind: string, data: object) => ({ kind, head: { corrId: "1", version: "2026-04-01" }, data });
const settle = (id: string) => ({ id, state: "resolved", value: value("mine") });

/** Every operation of the protocol on a foreign id, directly or by way of an own one; refused with 403 by default. */
const OPERATIONS = (id: string): [kind: string, data: object, refusal?: number][] => [
  ["promise.get", { id }],
  ["promise.create", targeted(id)],
  ["promise.settle", settle(id)],
  ["promise.register_callback", { awaited: id, awaiter: own }],
  ["promise.register_callback", { awaited: own, awaiter: id }],
  ["promise.register_listener", { awaited: id, address: "poll://uni@prod/1" }],
  ["task.get", { id }],
  ["task.create", { pid: "1", ttl: 60_000, action: inner("promise.create", targeted(id)) }],
  ["task.acquire", { id, version: 1, pid: "1", ttl: 60_000 }],
  ["task.acquire", { id, version: 0, pid: "1", ttl: 60_000, records: 1 }],
  ["task.release", { id, version: 1 }],
  ["task.suspend", { id, version: 1, actions: [inner("promise.register_callback", { awaited: own, awaiter: id })] }],
  [
    "task.suspend",
    { id: own, version: 1, actions: [inner("promise.register_callback", { awaited: id, awaiter: own })] },
  ],
  ["task.fulfill", { id, version: 1, action: inner("promise.settle", settle(id)) }],
  // The server refuses any task.fulfill that settles another promise than its task's.
  ["task.fulfill", { id: own, version: 1, action: inner("promise.settle", settle(id)) }, 400],
  ["task.fence", { id: own, version: 1, action: inner("promise.create", targeted(id)) }],
  ["task.fence", { id: own, version: 1, action: inner("promise.settle", settle(id)) }],
  [
    "task.heartbeat",
    {
      pid: "1",
      tasks: [
        { id: own, version: 1 },
        { id, version: 1 },
      ],
    },
  ],
  ["task.halt", { id }],
  ["task.continue", { id }],
  ["schedule.get", { id }],
  [
    "schedule.create",
    {
      id,
      cron: "* * * * *",
      promiseId: own,
      promiseTimeout: 1,
      promiseParam: {},
      promiseTags: { "resonate:target": "poll://any@nobody" },
    },
  ],
  [
    "schedule.create",
    {
      id: `${OWN}s`,
      cron: "* * * * *",
      promiseId: id,
      promiseTimeout: 1,
      promiseParam: {},
      promiseTags: { "resonate:target": "poll://any@nobody" },
    },
  ],
  ["schedule.delete", { id }],
];

const SEARCHES: [kind: string, data: object][] = [
  ["promise.search", {}],
  ["promise.search", { tags: { "resonate:branch": FOREIGN } }],
  ["promise.search", { tags: { "resonate:target": "poll://any@nobody" }, state: "pending", limit: 1 }],
  ["promise.search", { cursor: OWN, id: OWN }],
  ["promise.search", { id: `${OWN}*`, tags: {} }],
  ["task.search", {}],
  ["schedule.search", { tags: {} }],
];

describe("with a worker's token", () => {
  const NAMES = [
    FOREIGN,
    "test/schedule",
    "test/none",
    "prod",
    "prod:x",
    "Prod/x",
    " prod/x",
    "/prod/x",
    "../prod/x",
    "%70rod/x",
  ];
  const MORE = ["prod%2Ftimer_own", "ｐrod/x", "prod∕x", "p\u200brod/x", "./prod/x", "test/../prod/x", "PROD/x"];

  test.each([...NAMES, ...MORE])(
    "no operation reaches %j, works through it or reveals anything about it",
    async (id) => {
      for (const [kind, data, refusal = 403] of OPERATIONS(id)) {
        const { status, text } = await said(kind, data);
        expect([kind, status, text]).toEqual([kind, refusal, expect.not.stringContaining(SECRET)]);
      }
      const planted = await everything.call("promise.get", { id: FOREIGN });
      expect(planted.data).toMatchObject({ promise: { state: "pending", param: value(SECRET) } });
      expect(await everything.call("schedule.get", { id: "test/schedule" })).toMatchObject({ head: { status: 200 } });
    },
  );

  test.each(SEARCHES)("every search is refused (%s %j)", async (kind, data) => {
    expect((await said(kind, data)).status).toBe(403);
  });

  test("a task of the namespace comes with promises of the namespace only, even if its tags name others", async () => {
    for (const tag of ["resonate:branch", "resonate:origin", "resonate:parent", "resonate:root"]) {
      const id = `${OWN}tagged ${tag}`;
      const tagged = targeted(id, { [tag]: FOREIGN });
      const made = await said("task.create", { pid: "1", ttl: 60_000, action: inner("promise.create", tagged) });
      expect([tag, made.text]).toEqual([tag, expect.not.stringContaining(`"id":"${FOREIGN}`)]);
      await said("promise.create", targeted(`${id} 2`, { [tag]: FOREIGN }));
      const got = await said("task.acquire", { id: `${id} 2`, version: 0, pid: "1", ttl: 60_000, records: 1 });
      expect([tag, got.text]).toEqual([tag, expect.not.stringContaining(`"id":"${FOREIGN}`)]);
      const suspended = await said("task.suspend", {
        id,
        version: 1,
        actions: [inner("promise.register_callback", { awaited: own, awaiter: id })],
      });
      expect([tag, suspended.text]).toEqual([tag, expect.not.stringContaining(`"id":"${FOREIGN}`)]);
    }
  });

  test("ids in the namespace may have any characters", async () => {
    for (const id of [`${OWN}../${FOREIGN}`, `${OWN}a:b.c%2f~1 é\u202e🌧`]) {
      expect((await said("promise.create", targeted(id))).status).toBe(200);
      expect(JSON.parse((await said("promise.get", { id })).text).data.promise.id).toBe(id);
    }
  });

  test.each(["edge", "%65dge", "ed%67e"])("nobody can listen in place of the edge (%s)", async (group) => {
    const headers = { authorization: `Bearer ${worker.token}` };
    expect((await fetch(`${edge.url}/resonate/poll/${group}/1`, { headers })).status).toBe(403);
  });
});

describe("the operator's interface", () => {
  const ROUTES: [method: string, path: string][] = [
    ["GET", "usage"],
    ["POST", "rest"],
    ["POST", "rest?forever"],
    ["POST", "wake"],
    ["GET", "rows"],
    ["POST", "rows?first"],
    ["GET", "key"],
    ["POST", "key"],
    ["POST", "bucket?name=x&page=0"],
    ["GET", "bucket?name=x&page=0"],
    ["GET", "caller?caller=ada"],
    ["POST", "caller?caller=ada"],
    ["GET", "bookmark"],
    ["POST", "recover?bookmark=x"],
    ["GET", "none"],
  ];
  const half = operator.token.slice(0, operator.token.length / 2);
  const HEADERS: [who: string, headers: Record<string, string>][] = [
    ["nobody", {}],
    ["a worker", { authorization: `Bearer ${worker.token}` }],
    ["a caller", { authorization: `Bearer ${caller.token}` }],
    ["half of its token", { authorization: `Bearer ${half}` }],
    ["its token twice", { authorization: `Bearer ${operator.token}${operator.token}` }],
    ["its hash", { authorization: `Bearer ${operator.sha256}` }],
    ["its token as another scheme", { authorization: `Basic ${operator.token}` }],
    ["its token as a cookie", { cookie: `session=${operator.token}` }],
    ["an empty token", { authorization: "Bearer " }],
  ];

  test.each(HEADERS)("is refused to %s", async (_who, headers) => {
    for (const [method, path] of ROUTES) {
      const body = method === "POST" ? "[]" : undefined;
      const { status, text } = await send(`${edge.url}/resonate/operate/${path}`, { method, headers, body });
      expect([method, path, status, text]).toEqual([method, path, 401, "Unauthorized"]);
    }
    // The server still serves, and has lost nothing.
    expect((await everything.call("promise.get", { id: FOREIGN })).head.status).toBe(200);
  });

  test.each([undefined, "", caller.token, half, operator.sha256, worker.sha256, `${worker.token} `])(
    "a call with the token %j is refused",
    async (auth) => {
      for (const [kind, data] of [...OPERATIONS(own), ...SEARCHES]) {
        expect([kind, (await said(kind, data, auth ?? "")).status]).toEqual([kind, 401]);
      }
    },
  );

  test("a token for the server is refused by the edge", async () => {
    for (const token of [worker.token, operator.token]) {
      await expect(callerAt(`${edge.url}/mcp`, token).call("list_jobs")).rejects.toThrow();
    }
    expect(await callerAt(`${edge.url}/mcp`, caller.token).call("list_jobs")).toMatchObject({ jobs: [] });
  });
});
