/** Images, sounds and files of an answer that are too large for it become files of its job. */
import { getExtension } from "hono/utils/mime";
import type { Step } from "../../../core/definitions/context.ts";
import { type FileReference, MAX_FILE_NAME } from "../../../core/definitions/file.ts";
import { KEEPS_NO_FILES } from "../../../core/jobs/files/attempt-files.ts";
import { base64Of, FILES } from "../../../core/tools/content.ts";
import { MAX_MEDIA } from "../../../core/tools/results.ts";

type Json = Record<string, unknown>;

/** The answer with its largest media as files, until the others fit; as it is where nothing stores files. */
export async function withFiles(step: Step, answer: Json): Promise<Json> {
  const content = [...((answer.content as Json[] | undefined) ?? [])];
  const media = content.map((part, i) => ({ i, part, data: base64Of(part) })).filter(({ data }) => data !== "");
  let size = media.reduce((sum, { data }) => sum + data.length, 0);
  const files: FileReference[] = [];
  for (const { i, part, data } of media.sort((a, b) => b.data.length - a.data.length)) {
    if (size <= MAX_MEDIA) break;
    const { mimeType, uri } = { ...(part.resource as Json | undefined), ...part } as {
      mimeType?: string;
      uri?: string;
    };
    const options = mimeType === undefined ? {} : { mimeType };
    const file = await step
      .file(nameOf(part.type, i, uri, mimeType), Buffer.from(data, "base64"), options)
      .catch(orNone);
    if (!file) return answer;
    files.push(file);
    content[i] = { type: "text", text: `${file.name} (${file.mimeType}, ${file.size} bytes) is kept as ${file.uri}` };
    size -= data.length;
  }
  return files.length === 0 ? answer : { ...answer, content, [FILES]: files };
}

function orNone(error: Error): undefined {
  if (error.message !== KEEPS_NO_FILES) throw error;
}

/** The last part of a resource's address; for what has none, its kind, its number and the extension of its type. */
function nameOf(type: unknown, i: number, uri: string | undefined, mimeType = ""): string {
  const last = uri?.split(/[?#]/)[0]?.split("/").at(-1) ?? "";
  const named = last.replace(/[\p{Cc}\\]/gu, "").slice(-MAX_FILE_NAME);
  const extension = getExtension(mimeType);
  return named || `${type}-${i + 1}${extension === undefined ? "" : `.${extension}`}`;
}
