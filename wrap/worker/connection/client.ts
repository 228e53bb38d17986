/** How this client presents itself to wrapped servers: as one that supports questions to people (elicitation) and tasks. */
import {
  CLIENT_CAPABILITIES_META_KEY,
  CLIENT_INFO_META_KEY,
  Client,
  PROTOCOL_VERSION_META_KEY,
  type VersionNegotiationMode,
} from "@modelcontextprotocol/client";
import { TASKS } from "../../../core/tools/mcp.ts";

const INFO = { name: "durable-mcp-edge", version: "1" };
const CAPABILITIES = { elicitation: { form: {} }, extensions: { [TASKS]: {} } };

/** How long a program may be silent when the newest revision is offered, in milliseconds; after that an older one is offered. */
const PROBE = 30_000;

/**
 * A client of the 2025 revisions, or of the newest revision that the server has. `asked`: the only revision to speak. `timeout`:
 * how long the server may take to answer, in milliseconds.
 */
export function clientOf(
  mode: VersionNegotiationMode,
  asked: string | undefined,
  timeout: number,
  onListsChanged: () => void,
): Client {
  const changed = { autoRefresh: false, onChanged: onListsChanged };
  return new Client(INFO, {
    capabilities: CAPABILITIES,
    versionNegotiation: { mode, probe: { timeoutMs: Math.min(PROBE, timeout) } },
    ...(asked !== undefined && { supportedProtocolVersions: [asked] }),
    listChanged: { tools: changed, prompts: changed, resources: changed },
  });
}

/** The description of the client in each request of the 2026 revision. */
export const envelopeOf = (revision: string): Record<string, unknown> => ({
  [PROTOCOL_VERSION_META_KEY]: revision,
  [CLIENT_INFO_META_KEY]: INFO,
  [CLIENT_CAPABILITIES_META_KEY]: CAPABILITIES,
});
