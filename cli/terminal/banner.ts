import { styleText } from "node:util";
import { clientConfiguration } from "./clients.ts";

export interface BannerOptions {
  /** The server's name, for its clients. */
  name: string;
  /** The MCP endpoint. */
  url: string;
  /** Further lines. */
  facts: readonly (readonly [heading: string, text: string])[];
  /** The command that prints a client's configuration: `npm start -- --config cursor`. */
  configCommand(client: string): string;
  /** The start of the last line. */
  ready: string;
}

/** The text that the launcher prints when everything is up: one line per client, so that it fits a screen. */
export function banner({ name, url, facts, configCommand, ready }: BannerOptions): string {
  const clients = clientConfiguration(name, url).map(
    ({ id, client, paste }) => [client, paste.includes("\n") ? configCommand(id) : paste] as const,
  );
  const addresses = [["MCP endpoint", styleText("bold", url)], ...facts] as const;
  const width = Math.max(...[...addresses, ...clients].map(([heading]) => heading.length));
  const table = (rows: readonly (readonly [string, string])[]) =>
    rows.map(([heading, text]) => `  ${heading.padEnd(width)}  ${text}`).join("\n");
  return `
${table(addresses)}

${table(clients)}

${ready} Ctrl-C stops everything.
`;
}

/** The text of `--config`. */
export function clientText(name: string, url: string, id: string): string {
  const found = clientConfiguration(name, url).find((each) => each.id === id);
  if (!found) throw new Error(`no client ${id}`);
  return `${styleText("bold", found.client)}: ${found.where}\n\n${found.paste}`;
}
