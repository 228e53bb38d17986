/** An MCP client's whole OAuth flow, from the first refusal to a tool call, with the client's own implementation. */
import { Client, type OAuthClientProvider, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { Client as Client2025 } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport as Transport2025 } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { decodeJwt } from "jose";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type EdgeProcess, startEdge } from "../../cli/launcher/local-edge.ts";
import { ownGroup } from "../../testing/stack/worker-process.ts";
import { startResonate } from "../support/resonate.ts";
import { type AuthorizationServer, REDIRECT_URI, startAuthorizationServer } from "./authorization-server.ts";
import { UserAgent } from "./user-agent.ts";

const cleanup = new AsyncDisposableStack();
let server: AuthorizationServer;
let edge: EdgeProcess;
beforeAll(async () => {
  server = cleanup.use(await startAuthorizationServer([]));
  const resonate = cleanup.use(await startResonate());
  const bindings = {
    AUTH_MODE: "oauth",
    OAUTH_ISSUER: server.issuer,
    ALLOWED_HOSTS: "127.0.0.1",
    ...resonate.env,
    ...ownGroup().env,
  };
  edge = cleanup.use(await startEdge({ port: 0, bindings }));
});
afterAll(() => cleanup.disposeAsync());

/** A client's OAuth state between the steps of the flow, and the address to which it sent its user. */
function createProvider() {
  const kept: Record<string, unknown> = {};
  let sentTo: URL | undefined;
  const provider: OAuthClientProvider = {
    redirectUrl: REDIRECT_URI,
    clientMetadata: {
      client_name: "test",
      redirect_uris: [REDIRECT_URI],
      grant_types: ["authorization_code"],
      response_types: ["code"],
      token_endpoint_auth_method: "none",
      application_type: "native",
    },
    clientInformation: () => kept.client as never,
    saveClientInformation: (client) => void Object.assign(kept, { client }),
    tokens: () => kept.tokens as never,
    saveTokens: (tokens) => void Object.assign(kept, { tokens }),
    saveCodeVerifier: (verifier) => void Object.assign(kept, { verifier }),
    codeVerifier: () => String(kept.verifier),
    saveDiscoveryState: (discovery) => void Object.assign(kept, { discovery }),
    discoveryState: () => kept.discovery as never,
    redirectToAuthorization(url) {
      sentTo = url;
    },
  };
  return {
    provider,
    sentTo: () => sentTo ?? expect.fail("the user was not sent to the authorization server"),
    token: () => (kept.tokens as { access_token: string }).access_token,
  };
}

test.each([
  ["the current client", "ada"],
  ["the 2025-era client", "bob"],
])("%s gets a token, and starts a job as its user", async (kind, user) => {
  const { provider, sentTo, token } = createProvider();
  const url = new URL(`${edge.url}/mcp`);
  const identity = { name: "test", version: "1.0.0" };
  const [client, transport] =
    kind === "the current client"
      ? [
          () => new Client(identity, { versionNegotiation: { mode: "auto" } }),
          () => new StreamableHTTPClientTransport(url, { authProvider: provider }),
        ]
      : [() => new Client2025(identity), () => new Transport2025(url, { authProvider: provider as never })];

  const refused = transport();
  await expect(client().connect(refused as never)).rejects.toThrow(/authoriz/i);
  expect(Object.fromEntries(sentTo().searchParams)).toMatchObject({
    resource: url.href,
    scope: "mcp",
    code_challenge_method: "S256",
  });
  const { searchParams } = await new UserAgent(user).authorize(sentTo());
  await (refused instanceof StreamableHTTPClientTransport
    ? refused.finishAuth(searchParams)
    : refused.finishAuth(searchParams.get("code") ?? ""));

  const connected = client();
  await connected.connect(transport() as never);
  const result = await connected.callTool({
    name: "set_timer",
    arguments: { timer_name: "tea", seconds: 600 },
  });
  expect(result.structuredContent).toEqual({
    job_name: "timer_tea",
    promise_id: "timer_tea",
    timer_name: "tea",
    status: "running",
    fires_at: expect.any(String),
    collect_with: ["await_result", "probe_status"],
  });
  expect(decodeJwt(token())).toMatchObject({ iss: server.issuer, sub: user, aud: url.href, scope: "mcp" });
  await connected.close();
});
