/** Vercel's AI SDK, and what its converters make of the schemas for each vendor's model. */
import { createAnthropic } from "@ai-sdk/anthropic";
import { createGoogleGenerativeAI } from "@ai-sdk/google";
import { createMCPClient } from "@ai-sdk/mcp";
import { createOpenAI } from "@ai-sdk/openai";
import { generateText } from "ai";
import { drive, headers, step, TOOLS, url } from "./steps.mjs";

const client = await createMCPClient({ transport: { type: "http", url, headers } });
const tools = await client.tools();
await drive({
  list: async () => Object.keys(tools),
  call: (name, args) => tools[name].execute(args, { toolCallId: "1", messages: [] }),
});

/** The keywords of JSON Schema that Gemini's documentation lists. */
const KNOWN_TO_GEMINI = new Set(
  "type title description additionalProperties enum format items minItems maxItems minimum maximum anyOf oneOf properties required".split(
    " ",
  ),
);

/** The request that a vendor's model would have been sent. */
async function sentTo(model) {
  let body;
  const fetch = async (_url, init) => {
    body = JSON.parse(init.body);
    return new Response("{}", { status: 400 });
  };
  await generateText({ model: model(fetch), tools, prompt: "x", maxRetries: 0 }).catch(() => {});
  return body;
}

await step("converted for OpenAI", async () => {
  const body = await sentTo((fetch) => createOpenAI({ apiKey: "x", fetch })("gpt-5"));
  return body.tools.length === TOOLS.length || body;
});
await step("converted for Anthropic", async () => {
  const body = await sentTo((fetch) => createAnthropic({ apiKey: "x", fetch })("claude-sonnet-4-5"));
  return body.tools.length === TOOLS.length || body;
});
await step("converted for Google", async () => {
  const body = await sentTo((fetch) => createGoogleGenerativeAI({ apiKey: "x", fetch })("gemini-2.5-flash"));
  const declared = body.tools.flatMap((tool) => tool.functionDeclarations ?? []);
  const odd = declared.flatMap((one) => [...keywords(one.parametersJsonSchema ?? one.parameters)]);
  const unknown = odd.filter((word) => !KNOWN_TO_GEMINI.has(word));
  return (declared.length === TOOLS.length && unknown.length === 0) || [declared.length, ...unknown];
});
await client.close();

/** Every keyword of a schema. */
function* keywords(schema) {
  for (const [key, value] of Object.entries(schema)) {
    yield key;
    const parts =
      key === "properties" ? Object.values(value) : key === "anyOf" ? value : key === "items" ? [value] : [];
    for (const part of parts) yield* keywords(part);
  }
}
