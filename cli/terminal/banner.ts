import { styleText } from "node:util";
import { HOSTS } from "../../core/tools/index.ts";
import { localSetups } from "./clients.ts";

interface BannerOptions {
  /** The server's name, for its clients. */
  name: string;
  url: string;
  facts: readonly (readonly [heading: string, text: string])[];
  /** The command that prints a client's configuration: `npm start -- --config cursor`. */
  configCommand(client: string): string;
  /** The start of the last line. */
  ready: string;
}

/** The number of hosts with a line of their own. */
const MAX_HOST_LINES = 4;

/** The text that the launcher prints when everything is up. Only some hosts have a line, so that it fits on a screen. */
export function banner({ name, url, facts, configCommand, ready }: BannerOptions): string {
  const setups = localSetups({ name, url }).slice(0, MAX_HOST_LINES);
  const clients = [
    ...setups.map(({ id, host, file, paste }) => [host, file === undefined ? paste : configCommand(id)] as const),
    ["Others", configCommand(HOSTS.slice(MAX_HOST_LINES).join("|"))] as const,
  ];
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

export function clientText(name: string, url: string, id: string): string {
  const setup = localSetups({ name, url }).find((each) => each.id === id);
  if (!setup) throw new Error(`no client ${id}`);
  return `${styleText("bold", setup.host)}: ${setup.file ?? "run in a terminal"}\n\n${setup.paste}`;
}
