/**
 * The documents about a server that clients and directories read before they connect: its card (SEP-2127), and the catalog
 * that leads to it. They are public, so they list no tools.
 */
import { REVISION } from "../../core/tools/mcp.ts";
import { resourceOf } from "../auth/auth.ts";
import type { Identity } from "../mcp/identity.ts";
import { LegacyRevision } from "../mcp/message.ts";
import type { Config } from "./config.ts";

const CARD = "application/mcp-server-card+json";

export const DISCOVERY = [
  { path: "/mcp/server-card", document: "card", type: CARD },
  { path: "/.well-known/ai-catalog.json", document: "catalog", type: "application/ai-catalog+json" },
] as const;

export const CACHE_CONTROL = "public, max-age=3600";

export class Discovery {
  readonly #identity: Identity;
  readonly #config: Config;

  constructor(identity: Identity, config: Config) {
    this.#identity = identity;
    this.#config = config;
  }

  /** The card of the server, at its configured address or else the one that the request reached. */
  card(request: Request): object {
    const { info, description } = this.#identity;
    const { name, ...about } = info;
    const endpoint = resourceOf(request, this.#config);
    const token = { name: "Authorization", description: "Bearer, and a token", isRequired: true, isSecret: true };
    return {
      $schema: "https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json",
      name: `${domainOf(endpoint).split(".").reverse().join(".")}/${name}`,
      description,
      ...about,
      remotes: [
        {
          type: "streamable-http",
          url: endpoint.href,
          supportedProtocolVersions: [REVISION, ...LegacyRevision.options],
          // With OAuth, clients get a token by themselves.
          ...(this.#config.auth.AUTH_MODE === "bearer" && { headers: [token] }),
        },
      ],
    };
  }

  /** The catalog of a host with this one server. */
  catalog(request: Request): object {
    const endpoint = resourceOf(request, this.#config);
    const identifier = `urn:air:${domainOf(endpoint)}:mcp:${this.#identity.info.name}`;
    return { specVersion: "1.0", entries: [{ identifier, type: CARD, url: `${endpoint.href}/server-card` }] };
  }
}

/** The domain of a server; an IP address is none. */
const domainOf = ({ hostname }: URL): string => (/^[\d.]+$|^\[/.test(hostname) ? "localhost" : hostname);
