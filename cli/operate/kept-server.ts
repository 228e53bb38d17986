/** What `backup`, `restore` and `move` have in common: the server whose jobs they take, or bring some to. */
import { DATA } from "../launcher/start-options.ts";

/** The options by which a command is told of it, and the one for help, for `parseArgs`. */
export const KEEPER_OPTIONS = {
  url: { type: "string" },
  data: { type: "string", default: DATA },
  help: { type: "boolean" },
} as const;

/** What a command's usage says of them; `width` is that of its options' column. */
export const keeperUsage = (width: number): string =>
  `  ${"--url URL".padEnd(width)} the deployment; its operator's token in OPERATOR_TOKEN (npm run deploy -- --operator NAME)
  ${"--data DIR".padEnd(width)} without --url: the state of the embedded server (default ${DATA}), which has to be stopped`;
