import { serve } from "@hono/node-server";
import { Hono } from "hono";
import { anthropic } from "./anthropic.ts";
import type { Format, Heard, Reply } from "./dialogue.ts";
import { gemini } from "./gemini.ts";
import { chat, responses } from "./openai.ts";

const FORMATS: readonly Format[] = [anthropic, responses, chat, gemini];

/** A model on loopback whose replies come from a script. */
export interface ModelEndpoint extends AsyncDisposable {
  readonly origin: string;
  /** The requests since `follow`, turn by turn. */
  readonly heard: readonly Heard[];
  /** Whether it has sent its last text since `follow`. */
  readonly isDone: boolean;
  /** Begins a conversation. If the script throws, the conversation ends with the error's message. */
  follow(script: (heard: Heard) => Reply): void;
}

/** Serves every vendor's format at one port. The path of a request tells the format. */
export async function startModel(): Promise<ModelEndpoint> {
  let heard: Heard[] = [];
  let isDone = false;
  let script = (_: Heard): Reply => ({ text: "Ready." });
  const app = new Hono();
  app.post("*", async (c) => {
    const text = await c.req.text();
    const path = new URL(c.req.url).pathname;
    const body = text.startsWith("{") ? JSON.parse(text) : {};
    const format = FORMATS.find((each) => each.isTurn(path, body));
    const model = body.model ?? "scripted";
    if (!format) return aside(path, body, model);
    const turn = { ...format.hear(body), bytes: Buffer.byteLength(text) };
    heard.push(turn);
    const reply = script(turn);
    isDone = "text" in reply;
    return stream(format, reply, model);
  });
  app.all("*", (c) => c.json({ data: [], models: [], object: "list" }));
  const server = serve({ fetch: app.fetch, port: 0, hostname: "127.0.0.1" });
  await new Promise((resolve) => server.once("listening", resolve));
  const { port } = server.address() as { port: number };
  return {
    origin: `http://127.0.0.1:${port}`,
    get heard() {
      return heard;
    },
    get isDone() {
      return isDone;
    },
    follow(next) {
      heard = [];
      isDone = false;
      script = (turn) => {
        try {
          return next(turn);
        } catch (error) {
          return { text: `The script cannot go on: ${(error as Error).message}` };
        }
      };
    },
    [Symbol.asyncDispose]: () => new Promise((resolve) => server.close(() => resolve())),
  };
}

/** Answers the hosts' secondary requests, which have no tools: for titles and token counts. */
function aside(path: string, body: { stream?: boolean }, model: string): Response {
  if (/count_?tokens/i.test(path)) return Response.json({ input_tokens: 1, totalTokens: 1 });
  const words: Reply = { text: "A title" };
  if (body.stream || path.includes(":stream")) {
    const format = FORMATS.find((each) => each.isTurn(path, { tools: [0] }));
    if (format) return stream(format, words, model);
  }
  const content = [{ type: "text", text: words.text }];
  const message = { role: "assistant", content: words.text };
  const usage = { input_tokens: 1, output_tokens: 1 };
  return Response.json({
    id: "aside",
    type: "message",
    role: "assistant",
    model,
    content,
    stop_reason: "end_turn",
    usage,
    choices: [{ index: 0, message, finish_reason: "stop" }],
    candidates: [{ content: { role: "model", parts: [{ text: words.text }] }, finishReason: "STOP" }],
  });
}

function stream(format: Format, reply: Reply, model: string): Response {
  const events = format.say(reply, model).map(({ event, data }) => {
    const name = event === undefined ? "" : `event: ${event}\n`;
    return `${name}data: ${typeof data === "string" ? data : JSON.stringify(data)}\n\n`;
  });
  return new Response(events.join(""), { headers: { "content-type": "text/event-stream" } });
}
