/** Gives answers the addresses of the files to which they refer, and serves files as resources. */
import { filesIn, mayHaveFiles } from "../../core/author/file.ts";
import type { EdgeFeature } from "../../core/feature.ts";
import { isToolAnswer } from "../../core/tools/call-feature.ts";
import { ErrorCode, ProtocolError } from "../../core/tools/mcp.ts";
import { ABOUT, referringIn } from "../../core/tools/present.ts";
import { knowsLinks } from "../../core/tools/results.ts";
import type { LoadFiles } from "./files.ts";

export const files = (load: LoadFiles): EdgeFeature => ({
  name: "files",
  call:
    ({ job }) =>
    async (call, next) => {
      const result = await next();
      if (!isToolAnswer(result)) return result;
      const referring = referringIn(result, job);
      if (filesIn(referring, 1).length === 0) return result;
      const { caller, request } = call.request.scope;
      const loaded = await load();
      return result[ABOUT]?.isCard
        ? loaded.addressed(result, caller)
        : loaded.shown(result, referring, caller, knowsLinks(request.headers));
    },
  resources: {
    costOf: (uri) => (mayHaveFiles(uri) ? { access: ["read"] } : undefined),
    async read(uri, { scope, signal }) {
      const file = await (await load()).resource(scope.store, uri, scope.caller, signal);
      if ("refusal" in file) throw new ProtocolError(ErrorCode.InvalidParams, file.refusal, { uri });
      return file;
    },
  },
});
