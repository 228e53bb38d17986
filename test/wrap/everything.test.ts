/** Every tool of the protocol's own example server answers through the wrap as it does without it. */
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { until } from "../../testing/stack/program.ts";
import type { TestStack } from "../../testing/stack/stack.ts";
import type { WrapOptions } from "../../wrap/index.ts";
import { subscribe } from "../tasks/support.ts";
import { EVERYTHING, serve } from "./servers.ts";
import { connect, structuredOf, wrappedStack } from "./support.ts";

/** Every tool whose answer is always the same, with arguments. */
const CALLS: readonly [tool: string, args: Record<string, unknown>][] = [
  ["echo", { message: "hello" }],
  ["echo", { message: 7 }],
  ["echo", {}],
  ["gzip-file-as-resource", { name: "a.gz", data: "data:text/plain,hello", outputType: "resource" }],
  ["gzip-file-as-resource", { name: "b.gz", data: "data:text/plain,hello", outputType: "resourceLink" }],
  ["get-sum", { a: 2, b: 40 }],
  ["get-annotated-message", { messageType: "error", includeImage: true }],
  ["get-tiny-image", {}],
  ["get-structured-content", { location: "Chicago" }],
  ["get-resource-links", { count: 3 }],
  ["get-resource-reference", { resourceType: "Text", resourceId: 1 }],
  ["trigger-long-running-operation", { duration: 1, steps: 2 }],
];

/** The answer without times: a server-everything resource says when it was read, to the second. */
const timeless = (answer: object): unknown =>
  JSON.parse(
    JSON.stringify(answer, (key, value) => (key === "blob" ? atob(value) : value)).replace(
      /\d+:\d+:\d+ [AP]M/g,
      "then",
    ),
  );

/** The variables that describe the system and hold no secrets. The worker gets them from this process. */
const SYSTEM_VARIABLES = [
  "HOME",
  "LANG",
  "LC_ALL",
  "LOGNAME",
  "PATH",
  "SHELL",
  "TERM",
  "TMPDIR",
  "TZ",
  "USER",
  "VIRTUAL_ENV",
];

describe.each([
  ["stdio", async (): Promise<WrapOptions> => ({ name: "everything", command: process.execPath, args: [EVERYTHING] })],
  [
    "http",
    async (): Promise<WrapOptions> => {
      const { url } = servers.use(await serve(EVERYTHING, ["streamableHttp"]));
      return { name: "everything", url, allowPrivate: true };
    },
  ],
] as const)("over %s", (transport, options) => {
  let stack: TestStack;
  let direct: Client;
  let through: Client;
  beforeAll(async () => {
    stack = await wrappedStack(await options());
    through = await connect(stack.url);
    direct = new Client({ name: "test", version: "1.0.0" }, { capabilities: { elicitation: { form: {} } } });
    await direct.connect(new StdioClientTransport({ command: process.execPath, args: [EVERYTHING], stderr: "ignore" }));
  });
  afterAll(async () => {
    await Promise.all([direct?.close(), through?.close(), stack?.[Symbol.asyncDispose]()]);
  });

  test("lists the server's tools as they are", async () => {
    const expected = (await direct.listTools()).tools;
    const actual = (await through.listTools()).tools;
    for (const tool of expected) {
      const { inputSchema, outputSchema, execution: _, ...rest } = tool;
      const listedTool = actual.find(({ name }) => name === tool.name);
      expect(listedTool, tool.name).toMatchObject(rest);
      expect(listedTool?.inputSchema).toMatchObject(inputSchema);
      const { anyOf = [] } = (listedTool?.outputSchema ?? {}) as { anyOf?: unknown[] };
      if (outputSchema) expect(anyOf[0]).toMatchObject({ properties: outputSchema.properties });
    }
  });

  test.each(CALLS)("%s %j", async (name, args) => {
    const expected = await direct.callTool({ name, arguments: args });
    const actual = await through.callTool({ name, arguments: args });
    const { _meta, ...rest } = actual as Record<string, unknown>;
    expect(timeless(rest)).toEqual(timeless(expected));
  });

  test.each(["toggle-simulated-logging", "toggle-subscriber-updates"])("%s", async (name) => {
    const texts = async (client: Client) => structuredOf(await client.callTool({ name, arguments: {} })).text;
    // Each text names its session.
    const plain = (text: string) => text.replace(/session .*/, "session").slice(0, 40);
    expect(plain(await texts(through))).toBe(plain(await texts(direct)));
    expect(plain(await texts(through))).toBe(plain(await texts(direct)));
  });

  test("resources that a result refers to are read through the wrap as they are without it", async () => {
    const { content } = await through.callTool({ name: "get-resource-links", arguments: { count: 3 } });
    const links = (content as { type: string; uri: string }[]).filter(({ type }) => type === "resource_link");
    expect(links).toHaveLength(3);
    for (const { uri } of links) {
      const [actual, expected] = await Promise.all([through.readResource({ uri }), direct.readResource({ uri })]);
      expect(timeless(actual.contents)).toEqual(timeless(expected.contents));
    }
    const missing = through.readResource({ uri: "demo://resource/none" });
    await expect(missing).rejects.toMatchObject({
      code: -32602,
      message: expect.stringMatching(/everything: .*not found/),
    });
  });

  test.each(["2026", "2025"] as const)("prompts, resources and completion pass in the %s revision", async (era) => {
    const client = await connect(stack.url, era);
    const { prompts } = await client.listPrompts();
    expect(prompts).toEqual((await direct.listPrompts()).prompts);
    for (const params of [
      { name: "simple-prompt" },
      { name: "args-prompt", arguments: { city: "Oslo", state: "Oslo" } },
      { name: "resource-prompt", arguments: { resourceType: "Text", resourceId: "1" } },
    ]) {
      const [actual, expected] = await Promise.all([client.getPrompt(params), direct.getPrompt(params)]);
      expect(timeless(actual.messages)).toEqual(timeless(expected.messages));
    }
    await expect(client.getPrompt({ name: "args-prompt" })).rejects.toMatchObject({
      code: -32602,
      message: expect.stringContaining("everything: "),
    });
    await expect(client.getPrompt({ name: "none" })).rejects.toMatchObject({ code: -32602 });
    const { resources } = await client.listResources();
    const isListed = ({ uri }: { uri: string }) => !uri.includes("/session/");
    expect(resources).toEqual((await direct.listResources()).resources.filter(isListed));
    const [first] = resources;
    if (first) {
      const [actual, expected] = await Promise.all([client.readResource(first), direct.readResource(first)]);
      expect(actual.contents).toEqual(expected.contents);
    }
    const { resourceTemplates } = await client.listResourceTemplates();
    const directTemplates = (await direct.listResourceTemplates()).resourceTemplates;
    expect(resourceTemplates.filter(({ uriTemplate }) => !uriTemplate.startsWith("job:"))).toEqual(directTemplates);
    for (const params of [
      { ref: { type: "ref/prompt", name: "completable-prompt" }, argument: { name: "department", value: "S" } },
      {
        ref: { type: "ref/prompt", name: "completable-prompt" },
        argument: { name: "name", value: "" },
        context: { arguments: { department: "Sales" } },
      },
      {
        ref: { type: "ref/resource", uri: directTemplates[0]?.uriTemplate ?? "" },
        argument: { name: "resourceId", value: "1" },
      },
    ] as const) {
      const [actual, expected] = await Promise.all([client.complete(params), direct.complete(params)]);
      expect(actual.completion).toEqual(expected.completion);
    }
    await client.close();
  });

  test("a client is notified of changes of the resources that it subscribes to", async () => {
    const uri = "demo://resource/static/document/features.md";
    await using stream = await subscribe(stack.url, { resourceSubscriptions: [uri] });
    const updates = () => stream.messages.filter(({ method }) => method === "notifications/resources/updated");
    await until("the acknowledgement", () => stream.messages.length > 0);
    expect(stream.messages[0]?.params.notifications).toEqual({ resourceSubscriptions: [uri] });
    // The tool turns notifications of changes, one every five seconds, on or off.
    await through.callTool({ name: "toggle-subscriber-updates", arguments: {} });
    await until("two updates", () => updates().length > 1, 60_000);
    expect(updates()[0]?.params.uri).toBe(uri);
    await through.callTool({ name: "toggle-subscriber-updates", arguments: {} });
  });

  test.runIf(transport === "stdio")(
    "the program gets only harmless variables of the worker's environment",
    async () => {
      const { content } = await through.callTool({ name: "get-env", arguments: {} });
      const [first] = content as { text: string }[];
      expect(Object.keys(JSON.parse(first?.text ?? "")).sort()).toEqual(
        SYSTEM_VARIABLES.filter((name) => process.env[name] !== undefined),
      );
    },
  );
});

const servers = new AsyncDisposableStack();
afterAll(() => servers.disposeAsync());
