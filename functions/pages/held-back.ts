/** What operators are shown of wrapped servers. */
import type { HeldBack, Tool } from "../../core/author/tool.ts";

/** What the servers behind some tools say of themselves, and nobody has accepted yet: for operators, and on a local stack. */
export const heldBack = (tools: readonly Tool[]): HeldBack[] => [
  ...new Set(tools.flatMap((tool) => tool.heldBack ?? [])),
];
