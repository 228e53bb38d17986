import { type Body, type Format, newId, textOf } from "./dialogue.ts";

/** OpenAI's Chat Completions. */
export const chat: Format = {
  isTurn: (path, body) => path.includes("/chat/completions") && body.tools?.length > 0,

  hear: ({ tools, messages }) => ({
    tools: tools.map(({ function: { name } }: Body) => name),
    results: messages.filter(({ role }: Body) => role === "tool").map(({ content }: Body) => textOf(content)),
  }),

  say(reply, model) {
    const chunk = (delta: object, finish_reason: string | null = null) => ({
      data: {
        id: newId("chat"),
        object: "chat.completion.chunk",
        created: 1,
        model,
        choices: [{ index: 0, delta, finish_reason }],
      },
    });
    const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 };
    const delta =
      "text" in reply
        ? { content: reply.text }
        : {
            tool_calls: reply.calls.map(({ tool, args }, index) => {
              return {
                index,
                id: newId("call"),
                type: "function",
                function: { name: tool, arguments: JSON.stringify(args) },
              };
            }),
          };
    const end = chunk({}, "text" in reply ? "stop" : "tool_calls");
    return [chunk({ role: "assistant", ...delta }), { data: { ...end.data, usage } }, { data: "[DONE]" }];
  },
};

/** The separator between the name of a group of tools and that of a tool in it. */
const IN = "\u0000";

/** OpenAI's Responses, with groups of tools ("namespaces") and tool search by the client. */
export const responses: Format = {
  isTurn: (path, body) => path.includes("/responses") && body.tools?.length > 0,

  hear({ tools, input }) {
    const found = input.filter(({ type }: Body) => type === "tool_search_output").flatMap(({ tools }: Body) => tools);
    const names = [...tools, ...found].flatMap((tool: Body): string[] => {
      if (tool.type === "namespace") return tool.tools.map(({ name }: Body) => `${tool.name}${IN}${name}`);
      return [tool.type === "tool_search" ? "tool_search" : (tool.name ?? tool.type)];
    });
    const outputs = input.filter(({ type }: Body) => /_output$/.test(type));
    return { tools: names, results: outputs.map((item: Body) => textOf(item.output ?? item.tools)) };
  },

  say(reply, model) {
    const items: Body[] =
      "text" in reply
        ? [
            {
              type: "message",
              id: newId("msg"),
              role: "assistant",
              status: "completed",
              content: [{ type: "output_text", text: reply.text, annotations: [] }],
            },
          ]
        : reply.calls.map(({ tool, args }) => {
            const [last = "", namespace] = tool.split(IN).reverse();
            const call = { id: newId("fc"), call_id: newId("call"), status: "completed" };
            if (last === "tool_search")
              return { type: "tool_search_call", execution: "client", ...call, arguments: args };
            return {
              type: "function_call",
              ...call,
              name: last,
              arguments: JSON.stringify(args),
              ...(namespace && { namespace }),
            };
          });
    const usage = {
      input_tokens: 1,
      input_tokens_details: { cached_tokens: 0 },
      output_tokens: 1,
      output_tokens_details: { reasoning_tokens: 0 },
      total_tokens: 2,
    };
    const response = { id: newId("resp"), object: "response", model, output: items, usage };
    const data: Body[] = [
      { type: "response.created", response: { ...response, status: "in_progress", output: [] } },
      ...items.flatMap((item, output_index) => [
        { type: "response.output_item.added", output_index, item },
        { type: "response.output_item.done", output_index, item },
      ]),
      { type: "response.completed", response: { ...response, status: "completed" } },
    ];
    return data.map((each) => ({ event: each.type, data: each }));
  },
};
