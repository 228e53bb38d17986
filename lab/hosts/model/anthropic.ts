import { type Body, type Format, newId, textOf } from "./dialogue.ts";

/** Anthropic's Messages. A deferred tool may be called once a search has found it; the host reports a task's end as text. */
export const anthropic: Format = {
  isTurn: (path, body) => /\/v1\/messages(\?|$)/.test(path) && body.tools?.length > 0,

  hear({ tools, messages }) {
    const referred = new Set([...JSON.stringify(messages).matchAll(/"tool_name":"([^"]+)"/g)].map(([, name]) => name));
    const parts: Body[] = messages.flatMap(({ content }: Body) => (Array.isArray(content) ? content : []));
    return {
      tools: tools
        .filter(({ name, defer_loading }: Body) => !defer_loading || referred.has(name))
        .map(({ name }: Body) => name),
      results: parts
        .filter(({ type, text = "" }) => type === "tool_result" || text.includes("<task-notification>"))
        .map(textOf),
    };
  },

  say(reply, model) {
    const blocks =
      "text" in reply
        ? [{ start: { type: "text", text: "" }, delta: { type: "text_delta", text: reply.text } }]
        : reply.calls.map(({ tool, args }) => ({
            start: { type: "tool_use", id: newId("toolu"), name: tool, input: {} },
            delta: { type: "input_json_delta", partial_json: JSON.stringify(args) },
          }));
    const usage = { input_tokens: 1, output_tokens: 1 };
    const message = {
      id: newId("msg"),
      type: "message",
      role: "assistant",
      model,
      content: [],
      stop_reason: null,
      usage,
    };
    const stop_reason = "text" in reply ? "end_turn" : "tool_use";
    const data: Body[] = [
      { type: "message_start", message },
      ...blocks.flatMap(({ start, delta }, index) => [
        { type: "content_block_start", index, content_block: start },
        { type: "content_block_delta", index, delta },
        { type: "content_block_stop", index },
      ]),
      { type: "message_delta", delta: { stop_reason, stop_sequence: null }, usage },
      { type: "message_stop" },
    ];
    return data.map((each) => ({ event: each.type, data: each }));
  },
};
