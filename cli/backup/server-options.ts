/** The options of `backup`, `restore` and `move` that select the server whose jobs they read or write. */
import { DATA } from "../launcher/data-directory.ts";

export const SOURCE_OPTIONS = {
  url: { type: "string" },
  data: { type: "string", default: DATA },
} as const;

/** The lines about {@link SOURCE_OPTIONS} in a command's usage; `width` is that of the option column. */
export const sourceUsage = (width: number): string =>
  `  ${"--url URL".padEnd(width)} the deployment; needs an operator's token in OPERATOR_TOKEN (npm run deploy -- --operator NAME)
  ${"--data DIR".padEnd(width)} without --url: the state of the embedded server (default ${DATA}), which must be stopped`;
