/** What a call of a tool may do, by the tool's own hints. */
import type { ToolAnnotations } from "../../core/tools/mcp.ts";
import type { Access } from "../../core/tools/request-scope.ts";
import type { Tool } from "../../core/tools/tool.ts";

/** Whether a call reads or writes jobs. A tool that starts jobs writes, even if it declares itself read-only. */
export function accessOf({ job, listing }: Tool): Access {
  const { readOnlyHint } = (listing.annotations ?? {}) as ToolAnnotations;
  return readOnlyHint === true && !job ? "read" : "write";
}

/** Whether a repeat of a call is safe, unless the tool says otherwise during the call. */
export function mayRepeat({ job, listing }: Tool): boolean {
  const { readOnlyHint, idempotentHint } = (listing.annotations ?? {}) as ToolAnnotations;
  return job !== undefined || readOnlyHint === true || idempotentHint === true;
}
