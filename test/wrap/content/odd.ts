/**
 * A server over stdio that answers as each call says, without a library that would prevent nonsense. Each call of a tool is a
 * line of the file `CALLS`, with the tool and the id; each read of a resource is one with the server's name and the URI.
 */
import { appendFileSync } from "node:fs";
import { createInterface } from "node:readline";

const { CALLS = "", NAME = "odd" } = process.env;

const inputSchema = { type: "object" };
const TOOLS = [
  { name: "write", inputSchema },
  { name: "read", inputSchema, annotations: { readOnlyHint: true } },
];

interface Arguments {
  id: string;
  /** The members of the response besides its id, as JSON text. */
  answer?: string;
  /** Whether the answer is the message itself, as text. */
  echo?: true;
  /** The URI of a resource that the answer links to. */
  link?: string;
  /** The number of levels of the structured content. */
  deep?: number;
  /** The length of the text, which the structured content repeats. */
  text?: number;
  /** The lengths in base64 of the images, sounds and files. */
  media?: number[];
  /** The delay of the answer, in milliseconds. */
  after?: number;
}

function answerTo(
  line: string,
  method: string,
  params: { uri?: string; name?: string; ref?: { name?: string }; arguments?: Arguments; _meta?: object },
): string {
  const { answer, deep, text = 0, media } = params.arguments ?? { id: "" };
  switch (method) {
    case "initialize":
      return result({
        protocolVersion: "2025-11-25",
        capabilities: { tools: {}, resources: {}, prompts: {}, completions: {} },
        serverInfo: { name: NAME, version: "1" },
      });
    case "tools/list":
      return result({ tools: TOOLS });
    case "tools/call":
      if (deep !== undefined)
        return `"result":{"content":[],"structuredContent":${'{"a":'.repeat(deep)}{}${"}".repeat(deep)}}`;
      if (media || text > 0) {
        const words = "x".repeat(text);
        const twin = text > 0 && { structuredContent: { result: words } };
        return result({ content: [{ type: "text", text: words }, ...(media ?? []).map(medium)], ...twin });
      }
      if (params.arguments?.echo) return result({ content: [{ type: "text", text: line }] });
      if (params.arguments?.link) {
        return result({ content: [{ type: "resource_link", uri: params.arguments.link, name: "a link" }] });
      }
      return answer ?? result({ content: [{ type: "text", text: JSON.stringify(params) }], _meta: { "odd/own": 1 } });
    case "prompts/list":
      return result({ prompts: [{ name: "hello", arguments: [{ name: "whom" }] }] });
    case "prompts/get":
      return result({ messages: [{ role: "user", content: { type: "text", text: `${NAME}: ${params.name}` } }] });
    case "completion/complete":
      return result({ completion: { values: [NAME, params.ref?.name] } });
    case "resources/list":
      return result({ resources: [{ uri: "odd://shared", name: "shared" }] });
    case "resources/templates/list":
      return result({
        resourceTemplates: [
          { uriTemplate: `odd://${NAME}/{id}`, name: "by id" },
          { uriTemplate: `${NAME}://{id}`, name: "of the server's own scheme" },
          ...(NAME === "west" ? ["https://{+path}", "file:///{path}"] : []).map((uriTemplate) => ({
            uriTemplate,
            name: "any",
          })),
        ],
      });
    case "resources/read":
      return result({ contents: [{ uri: params.uri, text: `${NAME} was asked` }] });
    default:
      return `"error":{"code":-32601,"message":"no ${method}"}`;
  }
}

const MEDIA_KINDS = [
  (data: string) => ({ type: "image", data, mimeType: "image/png" }),
  (data: string) => ({ type: "audio", data, mimeType: "audio/wav" }),
  (blob: string) => ({ type: "resource", resource: { uri: "odd://file", blob } }),
];
export const medium = (size: number, i: number): object | undefined => MEDIA_KINDS[i % 3]?.("AAAA".repeat(size / 4));

const result = (value: object) => `"result":${JSON.stringify(value)}`;

createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params = {} } = JSON.parse(line);
  if (id === undefined) return;
  if (method === "tools/call") appendFileSync(CALLS, `${params.name} ${params.arguments.id}\n`);
  if (method === "resources/read") appendFileSync(CALLS, `${NAME} ${params.uri}\n`);
  const answer = `{"jsonrpc":"2.0","id":${JSON.stringify(id)},${answerTo(line, method, params)}}\n`;
  setTimeout(() => process.stdout.write(answer), params.arguments?.after ?? 0);
});
