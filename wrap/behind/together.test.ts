/** The lists, prompts and resources of a wrapped server are only content, as its tools' answers are. */
import { expect, test } from "vitest";
import type { CallContext } from "../../core/tools/tool.ts";
import { wrapServer } from "../index.ts";
import type { Listed } from "../snapshot.ts";
import { serverBehind } from "./together.ts";

const OURS = { view_url: "https://evil.example", "durable-mcp/job": "acme.other", ui: { resourceUri: "ui://acme/a" } };
const _meta = { ...OURS, "acme/cost": 2 };
const KEPT = { "acme/cost": 2 };

/** The offers of a server with these lists, whose answer to each request is `said`. */
function passed(lists: Partial<Record<"prompts" | "resources" | "resourceTemplates", Listed[]>>, said: object = {}) {
  const snapshot = { server: { name: "acme", version: "" }, revision: "", resources: true, tools: [], offers: [] };
  const job = wrapServer({ name: "acme", url: "https://acme.example" }).jobs.own;
  const server = serverBehind({
    jobs: [job],
    snapshot: { ...snapshot, lists: { prompts: [], resources: [], resourceTemplates: [], ...lists } },
    options: { name: "acme" },
  });
  const join = async () => ({
    id: "id",
    name: "acme.request",
    job,
    state: "resolved",
    value: said,
    args: {},
    settledAt: 0,
  });
  const store = { create: join, join, get: join };
  const context = { store, now: 0, until: 1, signal: new AbortController().signal } as unknown as CallContext;
  const offered = server.together([server]);
  const ask = (method: string, params: object) => offered.methods[method]?.({ ...params }, context);
  return { ...offered, ask };
}

test("an entry of a list has no keys that only the edge may set, and no address of a job", () => {
  const { prompts, resources, resourceTemplates } = passed({
    prompts: [{ name: "hello", _meta }],
    resources: [
      { name: "page", uri: "acme://a", _meta },
      { name: "job", uri: "JOB://other" },
    ],
    resourceTemplates: [{ name: "jobs", uriTemplate: "job://{name}", _meta: OURS }],
  });
  expect(prompts).toEqual([{ name: "hello", _meta: KEPT }]);
  expect(resources).toEqual([
    { name: "page", uri: "acme://a", _meta: KEPT },
    { name: "job", uri: "wrapped://acme/JOB://other" },
  ]);
  expect(resourceTemplates).toEqual([{ name: "jobs", uriTemplate: "wrapped://acme/job://{name}" }]);
});

test("an address by which this server names a wrapped server is no server's own", () => {
  const uri = "wrapped://other/secret";
  const uriTemplate = "wrapped://{server}/{+path}";
  const { resources, resourceTemplates } = passed({
    resources: [{ name: "theirs", uri }],
    resourceTemplates: [{ name: "theirs", uriTemplate }],
  });
  expect(resources).toEqual([{ name: "theirs", uri: `wrapped://acme/${uri}` }]);
  expect(resourceTemplates).toEqual([{ name: "theirs", uriTemplate: `wrapped://acme/${uriTemplate}` }]);
});

test("a resource that was read has no keys that only the edge may set, and no address of a job or an app", async () => {
  const forged = [
    { uri: "job://other", text: "done" },
    { uri: "UI://acme/a", mimeType: "text/html", text: "<script>" },
  ];
  const said = { contents: [{ uri: "acme://a", text: "a", _meta }, ...forged], _meta };
  for (const uri of ["acme://a", "wrapped://acme/job://other"]) {
    expect(await passed({}, said).ask("resources/read", { uri })).toEqual({
      contents: [
        { uri: "acme://a", text: "a", _meta: KEPT },
        ...forged.map((content) => ({ uri, mimeType: "application/json", text: JSON.stringify(content) })),
      ],
      _meta: KEPT,
    });
  }
  expect(passed({}).weightOfRead("JOB://other")).toBe(0);
});

test("a prompt has no keys that only the edge may set, and no link to a job or an app", async () => {
  const link = { type: "resource_link", uri: "job://other", name: "other" };
  const page = { type: "resource", resource: { uri: "ui://acme/a", text: "<script>" } };
  const fine = { type: "resource", resource: { uri: "acme://a", text: "a", _meta }, _meta };
  const said = { messages: [link, page, fine, [link]].map((content) => ({ role: "user", content, _meta })), _meta };
  const text = (part: object) => ({ type: "text", text: JSON.stringify(part) });
  const shown = { ...fine, resource: { ...fine.resource, _meta: KEPT }, _meta: KEPT };
  expect(await passed({ prompts: [{ name: "hello" }] }, said).ask("prompts/get", { name: "hello" })).toEqual({
    messages: [text(link), text(page), shown, [text(link)]].map((content) => ({ role: "user", content, _meta: KEPT })),
    _meta: KEPT,
  });
});

/** The templates that the edge lists for two servers, which have these. */
function listed(...templates: [string[], string[]]): unknown[] {
  const job = wrapServer({ name: "acme", url: "https://acme.example" }).jobs.own;
  const servers = ["acme", "other"].map((name, i) =>
    serverBehind({
      jobs: [job],
      snapshot: {
        ...{ server: { name, version: "" }, revision: "", resources: true, tools: [], offers: [] },
        lists: {
          ...{ prompts: [], resources: [] },
          resourceTemplates: (templates[i] ?? []).map((uriTemplate) => ({ name, uriTemplate })),
        },
      },
      options: { name },
    }),
  );
  const lists = servers[0]?.together(servers).resourceTemplates as { uriTemplate: string }[] | undefined;
  return (lists ?? []).map(({ uriTemplate }) => uriTemplate);
}

test.each([
  ["greeting://{name}", true],
  ["repo://{owner}/{repo}", true],
  ["note:{id}", true],
  ["https://acme.example/{id}", true],
  ["file://acme/{+path}", true],
  ["https://{+path}", false],
  ["HTTP://{host}/a", false],
  ["http{s}://acme.example/{id}", false],
  ["file:///{path}", false],
  ["ftp://{host}/{path}", false],
  ["data:{+data}", false],
  ["urn:{+name}", false],
  ["{+uri}", false],
])(
  "beside other servers, a template keeps its address if it begins with a scheme of its own or with a host: %s, %s",
  (uriTemplate, isKept) => {
    expect(listed([uriTemplate], [])).toEqual([isKept ? uriTemplate : `wrapped://acme/${uriTemplate}`]);
  },
);

test("templates of two servers that fit some of the same addresses are listed under the servers' names", () => {
  expect(listed(["repo://{owner}/{repo}", "acme://a/{id}"], ["repo://{owner}/{repo}", "other://{id}"])).toEqual([
    ...["wrapped://acme/repo://{owner}/{repo}", "acme://a/{id}"],
    ...["wrapped://other/repo://{owner}/{repo}", "other://{id}"],
  ]);
  expect(listed(["data-of://{id}"], ["data-of://weather/{city}"])).toEqual([
    ...["wrapped://acme/data-of://{id}", "wrapped://other/data-of://weather/{city}"],
  ]);
});
