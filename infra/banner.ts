import { styleText } from "node:util";
import { clientConfiguration } from "./clients.ts";
import type { Options } from "./options.ts";
import type { Stack } from "./stack.ts";

/** What the launcher prints once everything answers. */
export function banner(options: Options, stack: Stack): string {
  const url = `${stack.edgeUrl}/mcp`;
  const state = options.data === undefined ? "in memory" : `state in ${options.data}`;
  const resonate = stack.resonate ? `embedded, ${state}` : "from RESONATE_URL";
  const weather = stack.archive ? "bundled: Seattle (47.6062, -122.3321), 2012 to 2015" : stack.weatherUrl;
  const clients = clientConfiguration(url).map(
    ({ client, where, paste }) => `${styleText("bold", client)}: ${where}\n\n${indent(paste)}\n`,
  );
  return `
  MCP endpoint  ${styleText("bold", url)}
  Resonate      ${stack.resonateUrl} (${resonate})
  Weather       ${weather}

${clients.join("\n")}
Ready. Ctrl-C stops everything.
`;
}

const indent = (text: string) => text.replace(/^/gm, "  ");
