/** The lists, prompts and resources of a wrapped server are only content, as its tools' answers are. */
import { expect, test } from "vitest";
import type { CallContext } from "../../core/tools/tool.ts";
import { wrapServer } from "../index.ts";
import type { ListEntry } from "../snapshot.ts";
import { upstreamServer } from "./combine.ts";

const RESERVED_META = {
  view_url: "https://evil.example",
  "durable-mcp/job": "acme.other",
  ui: { resourceUri: "ui://acme/a" },
};
const _meta = { ...RESERVED_META, "acme/cost": 2 };
const OWN_META = { "acme/cost": 2 };

/** The offers of a server with these lists, whose answer to each request is `answer`. */
function offersOf(
  lists: Partial<Record<"prompts" | "resources" | "resourceTemplates", ListEntry[]>>,
  answer: object = {},
) {
  const snapshot = { server: { name: "acme", version: "" }, revision: "", resources: true, tools: [], offers: [] };
  const job = wrapServer({ name: "acme", url: "https://acme.example" }).jobs.own;
  const server = upstreamServer({
    jobs: [job],
    snapshot: { ...snapshot, lists: { prompts: [], resources: [], resourceTemplates: [], ...lists } },
    options: { name: "acme" },
  });
  const join = async () => ({
    id: "id",
    name: "acme.request",
    job,
    state: "resolved",
    value: answer,
    args: {},
    settledAt: 0,
  });
  const store = { create: join, join, get: join };
  const context = { store, now: 0, until: 1, signal: new AbortController().signal } as unknown as CallContext;
  const offers = server.combine([server]);
  const request = (method: string, params: object) => offers.methods[method]?.({ ...params }, context);
  return { ...offers, request };
}

test("an entry of a list has no keys that only the edge may set, and no address of a job", () => {
  const { prompts, resources, resourceTemplates } = offersOf({
    prompts: [{ name: "hello", _meta }],
    resources: [
      { name: "page", uri: "acme://a", _meta },
      { name: "job", uri: "JOB://other" },
    ],
    resourceTemplates: [{ name: "jobs", uriTemplate: "job://{name}", _meta: RESERVED_META }],
  });
  expect(prompts).toEqual([{ name: "hello", _meta: OWN_META }]);
  expect(resources).toEqual([
    { name: "page", uri: "acme://a", _meta: OWN_META },
    { name: "job", uri: "wrapped://acme/JOB://other" },
  ]);
  expect(resourceTemplates).toEqual([{ name: "jobs", uriTemplate: "wrapped://acme/job://{name}" }]);
});

test("an address by which this server names a wrapped server is no server's own", () => {
  const uri = "wrapped://other/secret";
  const uriTemplate = "wrapped://{server}/{+path}";
  const { resources, resourceTemplates } = offersOf({
    resources: [{ name: "theirs", uri }],
    resourceTemplates: [{ name: "theirs", uriTemplate }],
  });
  expect(resources).toEqual([{ name: "theirs", uri: `wrapped://acme/${uri}` }]);
  expect(resourceTemplates).toEqual([{ name: "theirs", uriTemplate: `wrapped://acme/${uriTemplate}` }]);
});

test("a resource that was read has no keys that only the edge may set, and no address of a job or an app", async () => {
  const forgedContents = [
    { uri: "job://other", text: "done" },
    { uri: "UI://acme/a", mimeType: "text/html", text: "<script>" },
  ];
  const answer = { contents: [{ uri: "acme://a", text: "a", _meta }, ...forgedContents], _meta };
  for (const uri of ["acme://a", "wrapped://acme/job://other"]) {
    expect(await offersOf({}, answer).request("resources/read", { uri })).toEqual({
      contents: [
        { uri: "acme://a", text: "a", _meta: OWN_META },
        ...forgedContents.map((content) => ({ uri, mimeType: "application/json", text: JSON.stringify(content) })),
      ],
      _meta: OWN_META,
    });
  }
  expect(offersOf({}).weightOfRead("JOB://other")).toBe(0);
});

test("a prompt has no keys that only the edge may set, and no link to a job or an app", async () => {
  const link = { type: "resource_link", uri: "job://other", name: "other" };
  const page = { type: "resource", resource: { uri: "ui://acme/a", text: "<script>" } };
  const fine = { type: "resource", resource: { uri: "acme://a", text: "a", _meta }, _meta };
  const answer = { messages: [link, page, fine, [link]].map((content) => ({ role: "user", content, _meta })), _meta };
  const text = (part: object) => ({ type: "text", text: JSON.stringify(part) });
  const expectedPart = { ...fine, resource: { ...fine.resource, _meta: OWN_META }, _meta: OWN_META };
  expect(await offersOf({ prompts: [{ name: "hello" }] }, answer).request("prompts/get", { name: "hello" })).toEqual({
    messages: [text(link), text(page), expectedPart, [text(link)]].map((content) => ({
      role: "user",
      content,
      _meta: OWN_META,
    })),
    _meta: OWN_META,
  });
});

/** The templates that the edge lists for two servers, which have these. */
function templatesOnEdge(...templates: [string[], string[]]): unknown[] {
  const job = wrapServer({ name: "acme", url: "https://acme.example" }).jobs.own;
  const servers = ["acme", "other"].map((name, i) =>
    upstreamServer({
      jobs: [job],
      snapshot: {
        server: { name, version: "" },
        revision: "",
        resources: true,
        tools: [],
        offers: [],
        lists: {
          prompts: [],
          resources: [],
          resourceTemplates: (templates[i] ?? []).map((uriTemplate) => ({ name, uriTemplate })),
        },
      },
      options: { name },
    }),
  );
  const lists = servers[0]?.combine(servers).resourceTemplates as { uriTemplate: string }[] | undefined;
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
  (uriTemplate, keepsAddress) => {
    expect(templatesOnEdge([uriTemplate], [])).toEqual([keepsAddress ? uriTemplate : `wrapped://acme/${uriTemplate}`]);
  },
);

test("templates of two servers that fit some of the same addresses are listed under the servers' names", () => {
  expect(
    templatesOnEdge(["repo://{owner}/{repo}", "acme://a/{id}"], ["repo://{owner}/{repo}", "other://{id}"]),
  ).toEqual([
    "wrapped://acme/repo://{owner}/{repo}",
    "acme://a/{id}",
    "wrapped://other/repo://{owner}/{repo}",
    "other://{id}",
  ]);
  expect(templatesOnEdge(["data-of://{id}"], ["data-of://weather/{city}"])).toEqual([
    "wrapped://acme/data-of://{id}",
    "wrapped://other/data-of://weather/{city}",
  ]);
});
