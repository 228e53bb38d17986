/** Replaces a wrapped server's answer that clients could not read by one that says what is wrong with it. */
import { specTypeSchemas } from "@modelcontextprotocol/client";
import { isRecord, rounded, unheldNumberIn, unheldReason } from "../../../core/resonate/index.ts";
import type { JsonObject } from "../host/open-request.ts";
import { tidyResult } from "../protocol-values.ts";

/** How much of an unreadable answer is shown. */
const MAX_EXCERPT_CHARACTERS = 10_000;

const CONTENT_TYPES = new Set<unknown>(["text", "image", "audio", "resource", "resource_link"]);

/** The answer itself, or a result that says why it cannot be read; `name`: the server's name. */
export function readableAnswer(received: unknown, name: string): JsonObject {
  const answer = tidyResult(received);
  const unheld = unheldNumberIn(answer, true);
  if (unheld) return unreadable(`${name} answered, but with ${unheldReason(unheld)}, at ${unheld.path}.`);
  // The schemas know no exact integers.
  const knownParts =
    isRecord(answer) && Array.isArray(answer.content)
      ? rounded({ ...answer, content: answer.content.map(forValidation) })
      : answer;
  const { issues } = specTypeSchemas.CallToolResult["~standard"].validate(knownParts) as {
    issues?: readonly { path?: readonly unknown[] }[];
  };
  if (issues) {
    const path = issues[0]?.path?.join(".");
    const json = JSON.stringify(answer);
    const excerpt =
      json.length > MAX_EXCERPT_CHARACTERS
        ? `${json.slice(0, MAX_EXCERPT_CHARACTERS)}… (${json.length} characters)`
        : json;
    return unreadable(
      `${name} answered, but not as the protocol has it${path ? `, at ${path}` : ""}. Its answer: ${excerpt}`,
    );
  }
  const result = answer as JsonObject;
  const { structuredContent, content } = result;
  if (Array.isArray(content) && (content.length > 0 || structuredContent === undefined)) return result;
  if (structuredContent === undefined) return { ...result, content: [text(`${name} answered with no content.`)] };
  // Clients of the 2025 revisions know objects only. Others read it as text.
  return { ...result, content: isRecord(structuredContent) ? [] : [text(JSON.stringify(structuredContent))] };
}

const text = (text: string) => ({ type: "text", text });

const unreadable = (why: string): JsonObject => ({
  isError: true,
  content: [text(`The call was made, and may have had its effect. ${why}`)],
});

/** For the validation, a part of a kind that is not known yet counts as text, and base64 data is not decoded. */
function forValidation(part: unknown): unknown {
  if (!isRecord(part)) return part;
  if (typeof part.type === "string" && !CONTENT_TYPES.has(part.type)) return text("");
  return typeof part.data === "string" ? { ...part, data: "" } : part;
}
