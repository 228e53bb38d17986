/** Gives answers the addresses of the files to which they refer, and serves files as resources. */
import { FILE_PATH, filesIn } from "../../core/author/index.ts";
import type { EdgeFeature } from "../../core/feature.ts";
import {
  ANSWER_SUBJECT,
  ErrorCode,
  FILES_META,
  isToolAnswer,
  knowsLinks,
  ProtocolError,
  referringIn,
  type ToolAnswer,
} from "../../core/tools/index.ts";
import type { LoadFiles } from "./files.ts";

/**
 * Whether an answer may refer to files, which is cheaper to see than to search it: its text has the structured content, except
 * for those of wrapped servers.
 */
const mayRefer = ({ content, _meta, [ANSWER_SUBJECT]: about }: ToolAnswer): boolean =>
  about?.files !== undefined ||
  _meta?.[FILES_META] !== undefined ||
  content.some((part) => part.type === "text" && part.text.includes(FILE_PATH));

export const files = (load: LoadFiles): EdgeFeature => ({
  name: "files",
  call:
    ({ job }) =>
    async (call, next) => {
      const result = await next();
      if (!isToolAnswer(result) || !mayRefer(result)) return result;
      const referring = referringIn(result, job);
      if (filesIn(referring, 1).length === 0) return result;
      const { caller, request } = call.request.scope;
      const loaded = await load();
      return result[ANSWER_SUBJECT]?.isCard
        ? loaded.withAddresses(result, caller)
        : loaded.withFileLinks(result, referring, caller, knowsLinks(request.headers));
    },
  resources: {
    costOf: (uri) => (uri.includes(FILE_PATH) ? { access: ["read"] } : undefined),
    async read(uri, { scope, signal }) {
      const file = await (await load()).resource(scope.store, uri, scope.caller, signal);
      if ("refusal" in file) throw new ProtocolError(ErrorCode.InvalidParams, file.refusal, { uri });
      return file;
    },
  },
});
