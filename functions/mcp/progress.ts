import type { ToolContext } from "../../core/author/tool.ts";

type Report = NonNullable<ToolContext["reportProgress"]>;

/** How much a report without news is greater than the one before. */
const LEAST = 0.001;

/** Sends each report greater than the one before, as the protocol demands. */
export function growing(send: Report): Report {
  let last = -LEAST;
  return (progress, total, message) => {
    last = Math.max(progress, last + LEAST);
    send(last, total, message);
  };
}
