/** Vercel's AI SDK, its conversion of the schemas for each vendor's model, and its web hooks. */
import { createAnthropic } from "@ai-sdk/anthropic";
import { createGoogleGenerativeAI } from "@ai-sdk/google";
import { createMCPClient, experimental_createMCPEventWebhook } from "@ai-sdk/mcp";
import { createOpenAI } from "@ai-sdk/openai";
import { generateText } from "ai";
import { driveEvents } from "../events.mjs";
import { drive, headers, step, TOOLS, token, url } from "../steps.mjs";
import { byGemini, generally } from "../vendors.ts";

/** The subscriptions, which an application would keep in its database. */
const kept = new Map();
const store = {
  get: async (key) => kept.get(key),
  getById: async (id) => [...kept.values()].find((one) => one.id === id),
  set: async (one) => void kept.set(one.key, one),
  update: async (key, patch) => void kept.set(key, { ...kept.get(key), ...patch }),
  delete: async (key) => void kept.delete(key),
};
const client = await createMCPClient({ transport: { type: "http", url, headers }, experimental_events: { store } });
const tools = await client.tools();
await drive({
  list: async () => Object.keys(tools),
  call: (name, args) => tools[name].execute(args, { toolCallId: "1", messages: [] }),
});

/** The request that would go to a vendor's model. */
async function sentTo(model) {
  let body;
  const fetch = async (_url, init) => {
    body = JSON.parse(init.body);
    return new Response("{}", { status: 400 });
  };
  await generateText({ model: model(fetch), tools, prompt: "x", maxRetries: 0 }).catch(() => {});
  return body;
}

/** Checks that all tools are present and within the limits of the vendor. */
function accepted(tools, rules) {
  const refused = tools.flatMap((tool) => rules.flatMap((rule) => rule(tool).map((what) => `${tool.name}: ${what}`)));
  return (tools.length === TOOLS.length && refused.length === 0) || [tools.length, ...refused];
}

await step("converted for OpenAI", async () => {
  const { tools } = await sentTo((fetch) => createOpenAI({ apiKey: "x", fetch })("gpt-5"));
  return accepted(
    tools.map((tool) => ({ ...tool, schema: tool.parameters })),
    [generally],
  );
});
await step("converted for Anthropic", async () => {
  const { tools } = await sentTo((fetch) => createAnthropic({ apiKey: "x", fetch })("claude-sonnet-4-5"));
  return accepted(
    tools.map((tool) => ({ ...tool, schema: tool.input_schema })),
    [generally],
  );
});
await step("converted for Google", async () => {
  const { tools } = await sentTo((fetch) => createGoogleGenerativeAI({ apiKey: "x", fetch })("gemini-2.5-flash"));
  const declared = tools.flatMap((tool) => tool.functionDeclarations ?? []);
  return accepted(
    declared.map((one) => ({ ...one, schema: one.parametersJsonSchema ?? one.parameters })),
    [generally, byGemini],
  );
});
// Only identified callers have web hooks, so these steps need a token.
if (token) {
  const told = [];
  const { experimental_events: events } = client;
  let id = "";
  await driveEvents({
    told,
    receive: experimental_createMCPEventWebhook({ store, onEvent: async ({ event }) => void told.push(event) }),
    start: (name, args) => tools[name].execute(args, { toolCallId: "1", messages: [] }),
    async subscribe(address) {
      const delivery = { mode: "webhook", url: address, allowInsecureLocalhost: true };
      ({ id } = await events.subscribe({ name: "job.ended", delivery }));
      return (await store.getById(id)).delivery.secret;
    },
    unsubscribe: () => events.unsubscribe({ id }),
  });
}
await client.close();
