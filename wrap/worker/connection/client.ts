/** How this client presents itself to wrapped servers: as one that supports questions to people (elicitation) and tasks. */
import {
  CLIENT_CAPABILITIES_META_KEY,
  CLIENT_INFO_META_KEY,
  Client,
  PROTOCOL_VERSION_META_KEY,
  type VersionNegotiationMode,
} from "@modelcontextprotocol/client";
import { TASKS_EXTENSION } from "../../../core/tools/index.ts";

const CLIENT_DESCRIPTION = { name: "durable-mcp-edge", version: "1" };
const CLIENT_CAPABILITIES = { elicitation: { form: {} }, extensions: { [TASKS_EXTENSION]: {} } };

/** How long a program may be silent when the newest revision is offered, in milliseconds; after that an older one is offered. */
const PROBE_TIMEOUT_MS = 30_000;

/**
 * A client of the 2025 revisions, or of the newest revision that the server has. `fixedRevision`: the only revision to
 * speak. `timeout`: how long the server may take to answer, in milliseconds.
 */
export function clientOf(
  mode: VersionNegotiationMode,
  fixedRevision: string | undefined,
  timeout: number,
  onListsChanged: () => void,
): Client {
  const listOptions = { autoRefresh: false, onChanged: onListsChanged };
  return new Client(CLIENT_DESCRIPTION, {
    capabilities: CLIENT_CAPABILITIES,
    versionNegotiation: { mode, probe: { timeoutMs: Math.min(PROBE_TIMEOUT_MS, timeout) } },
    ...(fixedRevision !== undefined && { supportedProtocolVersions: [fixedRevision] }),
    listChanged: { tools: listOptions, prompts: listOptions, resources: listOptions },
  });
}

/** The description of the client in each request of the 2026 revision. */
export const envelopeOf = (revision: string): Record<string, unknown> => ({
  [PROTOCOL_VERSION_META_KEY]: revision,
  [CLIENT_INFO_META_KEY]: CLIENT_DESCRIPTION,
  [CLIENT_CAPABILITIES_META_KEY]: CLIENT_CAPABILITIES,
});
