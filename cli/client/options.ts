/** The options and the connection of commands that are clients of a server. */
import { Connection } from "../../client/connection.ts";
import { option, WrongArguments } from "../arguments.ts";
import { localEndpoint } from "../launcher/data-directory.ts";
import { packageVersion } from "../package.ts";

export const CLIENT_OPTIONS = {
  url: option("URL", "the server's MCP endpoint (default: that of the stack on this machine)"),
};

export const TOKEN_USAGE = "MCP_TOKEN in the environment is the caller's token, where the server wants one.";

/** A connection to the endpoint that the options name. @throws {WrongArguments} for text that is not a URL */
export function connectionTo(url = localEndpoint()): Connection {
  if (!URL.canParse(url)) throw new WrongArguments(`--url: ${url} is not a URL.`);
  return new Connection({
    url: new URL(url),
    name: "durable-mcp-edge",
    version: packageVersion(),
    token: process.env.MCP_TOKEN,
    advice: ": set MCP_TOKEN to one of its callers'",
  });
}
