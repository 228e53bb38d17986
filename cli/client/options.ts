/** The options and the connection of commands that are clients of a server. */
import { Connection } from "../../client/connection.ts";
import { addressIn, option } from "../arguments.ts";
import { localEndpoint } from "../launcher/data-directory.ts";
import { packageVersion } from "../package.ts";

export const CLIENT_OPTIONS = {
  url: option("URL", "the server's MCP endpoint (default: that of the stack on this machine)"),
};

export const TOKEN_USAGE = "MCP_TOKEN in the environment is the caller's token, where the server wants one.";

/** A connection to the endpoint that the options name. @throws {WrongArguments} for text that is no address */
export function connectionTo(endpoint = localEndpoint()): Connection {
  return new Connection({
    url: addressIn("--url", endpoint),
    name: "durable-mcp-edge",
    version: packageVersion(),
    token: process.env.MCP_TOKEN,
    advice: ": set MCP_TOKEN to one of its callers'",
  });
}
