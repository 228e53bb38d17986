/** The tools of the conformance suite that answer at once. */
import { acceptedContent, type CallToolResult, inputRequired, inputResponse } from "@modelcontextprotocol/server";
import * as z from "zod";
import { type Tool, ToolError } from "../../core/tools/tool.ts";
import schema from "./schema.json" with { type: "json" };

const text = (words: string) => ({ type: "text", text: words }) as const;
const says = (words: string): CallToolResult => ({ content: [text(words)] });

/** One red pixel. */
const PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC";
const image = { type: "image", data: PNG, mimeType: "image/png" } as const;
/** A WAV header of 44 bytes, without samples. */
const WAV = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=";

function contentTool(name: string, call: Tool["call"], input: z.ZodObject = z.object({})): Tool {
  const description = `Conformance fixture ${name}.`;
  const json = z.toJSONSchema(input) as { type: "object" };
  return {
    name,
    input: { schema: input, json, isOpen: true },
    waits: false,
    listing: { name, description, inputSchema: json },
    call,
  };
}

const Name = z.object({ name: z.string() });

const elicitName: Tool["call"] = async (_args, { inputResponses }) => {
  const answer = acceptedContent(inputResponses, "user_name", Name);
  if (answer) return says(`Hello, ${answer.name}!`);
  return inputRequired({
    inputRequests: { user_name: inputRequired.elicit({ message: "What is your name?", requestedSchema: Name }) },
  });
};

const sample: Tool["call"] = async (_args, { inputResponses }) => {
  const answer = inputResponse(inputResponses, "capital_question");
  if (answer.kind === "sampling") return says(`The model says: ${JSON.stringify(answer.result.content)}`);
  const question = inputRequired.createMessage({
    messages: [{ role: "user", content: text("What is the capital of France?") }],
    maxTokens: 100,
  });
  return inputRequired({ inputRequests: { capital_question: question } });
};

const listRoots: Tool["call"] = async (_args, { inputResponses }) => {
  const answer = inputResponse(inputResponses, "client_roots");
  if (answer.kind === "roots") return says(`The roots are ${answer.roots.map((root) => root.uri).join(", ")}.`);
  return inputRequired({ inputRequests: { client_roots: inputRequired.listRoots() } });
};

const progress = contentTool("test_tool_with_progress", async (_args, { reportProgress }) => {
  for (const done of [0, 50, 100]) {
    reportProgress?.(done, 100, `${done} of 100`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  return says("Done.");
});

const jsonSchema = contentTool(
  "json_schema_2020_12_tool",
  async (args) => says(JSON.stringify(args)),
  z.looseObject({}),
);
/** The suite expects keywords of JSON Schema that zod does not generate. */
jsonSchema.listing.inputSchema = schema;

export const CONTENT_TOOLS: readonly Tool[] = [
  contentTool("greet", async (args) => says(`Hello, ${Name.parse(args).name}!`), Name),
  contentTool("test_simple_text", async () => says("This is a simple text response for testing.")),
  contentTool("test_image_content", async () => ({ content: [image] })),
  contentTool("test_audio_content", async () => ({ content: [{ type: "audio", data: WAV, mimeType: "audio/wav" }] })),
  contentTool("test_embedded_resource", async () => ({
    content: [{ type: "resource", resource: { uri: "test://embedded", mimeType: "text/plain", text: "A resource." } }],
  })),
  contentTool("test_multiple_content_types", async () => ({
    content: [
      text("Multiple content types test:"),
      image,
      { type: "resource", resource: { uri: "test://mixed", mimeType: "application/json", text: '{"test":"data"}' } },
    ],
  })),
  contentTool("test_error_handling", async () => {
    throw new ToolError("This tool intentionally returns an error for testing");
  }),
  { ...progress, waits: true },
  jsonSchema,
  contentTool("test_input_required_result_elicitation", elicitName),
  contentTool("test_input_required_result_sampling", sample),
  contentTool("test_input_required_result_list_roots", listRoots),
  contentTool("test_missing_capability", sample),
  contentTool("test_streaming_elicitation", elicitName),
  contentTool("test_logging_tool", async () => says("Nothing is logged to the client.")),
];
