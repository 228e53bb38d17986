/** Each of several wrapped servers serves its own prompts and resources, including resources that only its results have named. */
import { randomUUID } from "node:crypto";
import { mkdtemp, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startEdge } from "../../../cli/launcher/local-edge.ts";
import { startStack, type TestStack } from "../../../testing/stack/stack.ts";
import { bearer, bearerBindings } from "../../auth/support.ts";
import { connect, linesOf, projectOf } from "../support.ts";

const EDGE = "test/wrap/content/pair-edge.ts";
const TOKENS = { ada: "static-token-of-ada", bob: "static-token-of-bob" };

let file: string;
let stack: TestStack;
beforeAll(async () => {
  file = join(await mkdtemp(join(tmpdir(), "odd-")), "calls");
  const pair = await Promise.all(
    ["east", "west"].map(async (name) => {
      const program = {
        command: process.execPath,
        args: ["test/wrap/content/odd.ts"],
        env: { CALLS: file, NAME: name },
      };
      const options = { name, prefix: name, ...program };
      return { options, ...(await projectOf(options)) };
    }),
  );
  const worker = join(pair[0]?.root ?? "", "pair.ts");
  const [east, west] = pair.map(({ root }) => JSON.stringify(resolve(root, "runs.ts")));
  await writeFile(
    worker,
    `import { runWorker } from ${JSON.stringify(resolve("worker/index.ts"))};
import { runs as east } from ${east};
import { runs as west } from ${west};
await runWorker({ functions: [...east, ...west] });
`,
  );
  const WRAP_PAIR = JSON.stringify(pair.map(({ options, snapshot }) => ({ options, snapshot })));
  const bindings = { ...bearerBindings(TOKENS), WRAP_PAIR };
  stack = await startStack({ edge: EDGE, worker, bindings });
});
afterAll(async () => stack?.[Symbol.asyncDispose]());

const unknownResource = {
  code: -32602,
  message: expect.stringContaining("none of your last results names this resource"),
};

test("a resource is read from the server whose result has named it to the caller, and no other server learns its address", async () => {
  const ada = await connect(stack.url, "2026", {}, bearer(TOKENS.ada));
  const bob = await connect(stack.url, "2026", {}, bearer(TOKENS.bob));
  const uri = "odd://report?key=secret";
  await expect(ada.readResource({ uri })).rejects.toMatchObject(unknownResource);
  await ada.callTool({ name: "east_write", arguments: { id: "e", link: "odd://other" } });
  await ada.callTool({ name: "west_write", arguments: { id: "w", link: uri } });
  expect((await ada.readResource({ uri })).contents).toEqual([{ uri, text: "west was asked" }]);
  expect((await ada.readResource({ uri: "odd://other" })).contents).toEqual([
    { uri: "odd://other", text: "east was asked" },
  ]);
  // A resource named to another caller is unknown to this one, and so is a part of an address.
  await expect(bob.readResource({ uri })).rejects.toMatchObject(unknownResource);
  await expect(ada.readResource({ uri: "odd://report" })).rejects.toMatchObject(unknownResource);
  expect(await linesOf(file, uri)).toEqual([`west ${uri}`]);
  await Promise.all([ada.close(), bob.close()]);
});

test.each(["See %s", "See %s.", "[the report](%s), and more", "(%s)", "one\n%s\ntwo", '{"url":"%s"}'])(
  "an address that a result names within a text is read from its server, and no template of another server gets it: %j",
  async (text) => {
    const ada = await connect(stack.url, "2026", {}, bearer(TOKENS.ada));
    const uri = `https://east.example/r?key=${randomUUID()}`;
    const content = [{ type: "text", text: text.replace("%s", uri) }];
    await ada.callTool({
      name: "east_write",
      arguments: { id: "t", answer: `"result":${JSON.stringify({ content })}` },
    });
    expect((await ada.readResource({ uri })).contents).toEqual([{ uri, text: "east was asked" }]);
    await expect(ada.readResource({ uri: uri.slice(0, -1) })).rejects.toMatchObject(unknownResource);
    expect(await linesOf(file, uri)).toEqual([`east ${uri}`]);
    await ada.close();
  },
);

test("a template that does not say whose addresses it means gets only those that name its server", async () => {
  const ada = await connect(stack.url, "2026", {}, bearer(TOKENS.ada));
  const { resourceTemplates } = await ada.listResourceTemplates();
  const templates = resourceTemplates.map(({ uriTemplate }) => uriTemplate);
  const ofWest = ["wrapped://west/https://{+path}", "wrapped://west/file:///{path}"];
  const own = ["odd://east/{id}", "odd://west/{id}", "east://{id}", "west://{id}"];
  expect(templates).toEqual(expect.arrayContaining([...own, ...ofWest]));
  const uri = "west://7";
  expect((await ada.readResource({ uri })).contents).toEqual([{ uri, text: "west was asked" }]);
  for (const uri of ["https://east.example/r?key=unnamed", "file:///unnamed"]) {
    await expect(ada.readResource({ uri })).rejects.toMatchObject(unknownResource);
    expect(await linesOf(file, uri)).toEqual([]);
    const { contents } = await ada.readResource({ uri: `wrapped://west/${uri}` });
    expect(contents).toEqual([{ uri, text: "west was asked" }]);
  }
  await ada.close();
});

test("prompts of the same name and resources of the same address are kept apart by server", async () => {
  const ada = await connect(stack.url, "2026", {}, bearer(TOKENS.ada));
  const { prompts } = await ada.listPrompts();
  expect(prompts.map(({ name }) => name)).toEqual(["east_hello", "west_hello"]);
  expect(prompts[0]?.arguments).toEqual([{ name: "whom" }]);
  const { messages } = await ada.getPrompt({ name: "west_hello" });
  expect(messages).toMatchObject([{ content: { text: "west: hello" } }]);
  const ref = { type: "ref/prompt", name: "west_hello" } as const;
  const { completion } = await ada.complete({ ref, argument: { name: "whom", value: "" } });
  expect(completion.values).toEqual(["west", "hello"]);
  const { resources } = await ada.listResources();
  const uris = resources.map(({ uri }) => uri);
  expect(uris).toEqual(["odd://shared", "wrapped://west/odd://shared"]);
  const texts = await Promise.all(
    [...uris, "odd://west/7"].map(async (uri) => (await ada.readResource({ uri })).contents[0]),
  );
  expect(texts).toEqual([
    { uri: "odd://shared", text: "east was asked" },
    { uri: "odd://shared", text: "west was asked" },
    { uri: "odd://west/7", text: "west was asked" },
  ]);
  await ada.close();
});

test("tools of two servers with the same name are refused with a message that has no stack of the bundle", async () => {
  const snapshot = { server: { name: "s", version: "1" }, revision: "2025-11-25", resources: false };
  const lists = { prompts: [], resources: [], resourceTemplates: [] };
  const tools = [{ name: "report", inputSchema: { type: "object" } }];
  const pair = ["east", "west"].map((name) => ({
    options: { name, url: "https://acme.example/mcp" },
    snapshot: { ...snapshot, tools, lists, offers: [] },
  }));
  const startup = startEdge({ port: 0, bindings: { WRAP_PAIR: JSON.stringify(pair) }, entry: EDGE });
  const words = "Two tools are called report, built-in ones included. Give a wrapped server a prefix.";
  await expect(startup).rejects.toThrow(new RegExp(`^${words}$`));
});
