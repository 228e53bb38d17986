/**
 * What clients and directories may know of a server before they connect: its card (SEP-2127), and the catalog that leads to
 * it. Everybody reads them: they say nothing that a caller would not be told, and list no tools.
 */
import { REVISION } from "../../core/tools/mcp.ts";
import { resourceOf } from "../auth/auth.ts";
import type { Identity } from "../mcp/identity.ts";
import { LegacyRevision } from "../mcp/plain.ts";
import type { Config } from "./config.ts";

const CARD = "application/mcp-server-card+json";

/** Where they are, and as what they are served. */
export const DISCOVERY = [
  { path: "/mcp/server-card", document: "card", type: CARD },
  { path: "/.well-known/ai-catalog.json", document: "catalog", type: "application/ai-catalog+json" },
] as const;

/** They may be kept for an hour. */
export const KEPT = "public, max-age=3600";

export class Discovery {
  readonly #identity: Identity;
  readonly #config: Config;

  constructor(identity: Identity, config: Config) {
    this.#identity = identity;
    this.#config = config;
  }

  /** The card of the server as a request has reached it, or as it is configured. */
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
          // With OAuth clients get a token themselves.
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

/** The domain that a server is known by; an address is none. */
const domainOf = ({ hostname }: URL): string => (/^[\d.]+$|^\[/.test(hostname) ? "localhost" : hostname);
