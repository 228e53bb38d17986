/**
 * The documents about a server that clients and directories read before they connect: its card (SEP-2127), and the catalog
 * that leads to it. They are public, so they list no tools.
 */
import { type Identity, PROTOCOL_REVISION } from "../../core/tools/index.ts";

const CARD_TYPE = "application/mcp-server-card+json";

/** The server at an address; `earlier` are the revisions that it speaks besides the newest one. */
export interface DescribedServer {
  identity: Identity;
  endpoint: URL;
  earlier: readonly string[];
  isBearer: boolean;
}

export const documents = {
  card({ identity: { info, description }, endpoint, earlier, isBearer }: DescribedServer): object {
    const { name, ...details } = info;
    const token = { name: "Authorization", description: "Bearer, and a token", isRequired: true, isSecret: true };
    return {
      $schema: "https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json",
      name: `${domainOf(endpoint).split(".").reverse().join(".")}/${name}`,
      description,
      ...details,
      remotes: [
        {
          type: "streamable-http",
          url: endpoint.href,
          supportedProtocolVersions: [PROTOCOL_REVISION, ...earlier],
          // With OAuth, clients get a token by themselves.
          ...(isBearer && { headers: [token] }),
        },
      ],
    };
  },

  /** The catalog of a host with this one server. */
  catalog({ identity: { info }, endpoint }: DescribedServer): object {
    const identifier = `urn:air:${domainOf(endpoint)}:mcp:${info.name}`;
    return { specVersion: "1.0", entries: [{ identifier, type: CARD_TYPE, url: `${endpoint.href}/server-card` }] };
  },
};

/** The domain of a server; `localhost` for an IP address. */
const domainOf = ({ hostname }: URL): string => (/^[\d.]+$|^\[/.test(hostname) ? "localhost" : hostname);
