import { type Body, type Format, textOf } from "./dialogue.ts";

/** Gemini's `streamGenerateContent`. */
export const gemini: Format = {
  isTurn: (path, body) => path.includes(":streamGenerateContent") && body.tools?.length > 0,

  hear({ tools, contents }) {
    const parts: Body[] = contents.flatMap(({ parts }: Body) => parts);
    return {
      tools: tools.flatMap(({ functionDeclarations = [] }: Body) => functionDeclarations.map(({ name }: Body) => name)),
      results: parts.flatMap(({ functionResponse }) => (functionResponse ? [textOf(functionResponse.response)] : [])),
    };
  },

  say(reply) {
    const parts =
      "text" in reply
        ? [{ text: reply.text }]
        : reply.calls.map(({ tool, args }) => ({ functionCall: { name: tool, args } }));
    const candidates = [{ content: { role: "model", parts }, finishReason: "STOP", index: 0 }];
    const usageMetadata = { promptTokenCount: 1, candidatesTokenCount: 1, totalTokenCount: 2 };
    return [{ data: { candidates, usageMetadata } }];
  },
};
