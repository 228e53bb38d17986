/** Replaces a wrapped server's answer that clients could not read by one that says what is wrong with it. */
import { specTypeSchemas } from "@modelcontextprotocol/client";
import { isRecord } from "../../../core/resonate/json.ts";
import type { JsonObject } from "../connection/open-request.ts";

/** How deep an answer may be nested. The code that walks it is recursive, here and in clients. */
const MAX_DEPTH = 1_000;
/** How many characters of an unreadable answer are shown. */
const MAX_SHOWN = 10_000;

const KINDS = new Set<unknown>(["text", "image", "audio", "resource", "resource_link"]);

/** The answer itself, or a result that says why it cannot be read; `name`: the server's name. */
export function readable(answer: unknown, name: string): JsonObject {
  if (isTooDeep(answer)) {
    return unreadable(`${name} answered, but its answer is nested more than ${MAX_DEPTH} levels deep.`);
  }
  const known =
    isRecord(answer) && Array.isArray(answer.content) ? { ...answer, content: answer.content.map(asKnown) } : answer;
  const { issues } = specTypeSchemas.CallToolResult["~standard"].validate(known) as {
    issues?: readonly { path?: readonly unknown[] }[];
  };
  if (issues) {
    const where = issues[0]?.path?.join(".");
    const json = JSON.stringify(answer);
    const shown = json.length > MAX_SHOWN ? `${json.slice(0, MAX_SHOWN)}… (${json.length} characters)` : json;
    return unreadable(
      `${name} answered, but not as the protocol has it${where ? `, at ${where}` : ""}. Its answer: ${shown}`,
    );
  }
  const result = answer as JsonObject;
  if (result.content !== undefined) return result;
  const isEmpty = result.structuredContent === undefined;
  return { ...result, content: isEmpty ? [text(`${name} answered with no content.`)] : [] };
}

const text = (text: string) => ({ type: "text", text });

const unreadable = (words: string): JsonObject => ({
  isError: true,
  content: [text(`The call was made, and may have had its effect. ${words}`)],
});

/** For the validation, a part of a kind that is not known yet counts as text, and base64 data is not decoded. */
function asKnown(part: unknown): unknown {
  if (!isRecord(part)) return part;
  if (typeof part.type === "string" && !KINDS.has(part.type)) return text("");
  return typeof part.data === "string" ? { ...part, data: "" } : part;
}

export function isTooDeep(value: unknown): boolean {
  let level: unknown[] = [value];
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > MAX_DEPTH) return true;
    level = level.flatMap((each) => (typeof each === "object" && each !== null ? Object.values(each) : []));
  }
  return false;
}
