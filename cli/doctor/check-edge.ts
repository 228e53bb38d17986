/** Checks the edge without a token, as anyone on the internet sees it. */
import { isLoopback } from "../../functions/auth/auth-config.ts";
import { ask, checkClock, type Finding, field, findings, type HttpAnswer } from "./finding.ts";

export const AUTH_MODES = ["oauth", "bearer", "none"] as const;
type AuthMode = (typeof AUTH_MODES)[number];

const SET_VARIABLE =
  "Set what it names: add it to infra/keys/edge.env and deploy again with --secrets-file infra/keys/edge.env.";
const CHECK_LOG = "Check the edge's log while you run the doctor again: npx wrangler tail.";

/** Whether this product's edge answers at `origin`. */
export async function checkEdge(origin: URL): Promise<Finding[]> {
  const answer = await ask(new URL("/health", origin));
  const finding = edgeFinding(origin, answer);
  return finding.status === "failed" ? [finding] : [finding, checkClock("edge's clock", answer)];
}

function edgeFinding(origin: URL, answer: HttpAnswer): Finding {
  const { ok, warning, failed } = findings("edge");
  if (answer.status === undefined) {
    return failed(
      `${origin.origin} cannot be reached: ${answer.reason}`,
      "Check the address; deploy with `npm run deploy`, which prints it. Behind a domain of your own, check its DNS.",
    );
  }
  const error = field(answer.text, "error");
  if (typeof error === "string" && answer.status >= 500) {
    return failed(`answers ${answer.status}: ${error}`, SET_VARIABLE);
  }
  if (answer.status !== 200 || field(answer.text, "status") !== "ok") {
    return failed(
      `something else answers at ${origin.origin}/health, with ${answer.status}`,
      "Give the address of the edge itself; a proxy before it must pass on /health, /ready, /mcp and /.well-known.",
    );
  }
  if (origin.protocol === "http:" && !isLoopback(origin)) {
    return warning("answers, but tokens travel unencrypted", "Use the https:// address.");
  }
  return ok(`answers at ${origin.origin}`);
}

/** Whether the edge reaches its Resonate server. */
export async function checkReady(origin: URL): Promise<Finding> {
  const { ok, warning, failed } = findings("edge to Resonate");
  const answer = await ask(new URL("/ready", origin));
  if (answer.status === 200) {
    const missingBinding = field(answer.text, "missing");
    if (typeof missingBinding !== "string") return ok("the edge reaches its Resonate server");
    return warning(
      `the edge reaches its Resonate server, but ${missingBinding}`,
      "Bind it as docs/auth.md says, and deploy.",
    );
  }
  if (answer.status === undefined) return failed(`no answer at /ready: ${answer.reason}`, CHECK_LOG);
  const error = field(answer.text, "error");
  if (answer.status === 500 && typeof error === "string") return failed(error, SET_VARIABLE);
  return failed(
    `the edge says: ${field(answer.text, "reason") ?? `status ${answer.status}`}`,
    "Check the edge's RESONATE_URL and that the server runs: docker compose -f infra/compose.yaml ps. " +
      "With the tunnel, its public host name must point to http://resonate:8001.",
  );
}

/** Checks that a call without a token is treated as in `expectedMode`; undefined expects that some kind of token is required. */
export async function checkAuth(origin: URL, expectedMode: AuthMode | undefined): Promise<Finding> {
  const { ok, failed } = findings("authentication");
  const answer = await ask(new URL("/mcp", origin), {
    method: "POST",
    headers: { "Content-Type": "application/json", Accept: "application/json, text/event-stream" },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "ping" }),
  });
  if (answer.status === undefined) return failed(`no answer at /mcp: ${answer.reason}`, CHECK_LOG);
  if (answer.status !== 401) {
    if (expectedMode === "none") return ok("none, as expected: everyone who reaches the edge may use it");
    if (expectedMode === undefined && isLoopback(origin)) return ok("none, on this machine only");
    if (answer.status >= 500) return failed(`/mcp answers ${answer.status}`, CHECK_LOG);
    return failed(
      `a call without a token is answered (${answer.status}): everyone on the internet may use this deployment`,
      "Set AUTH_MODE to oauth or bearer, or run the doctor with --auth none if that is meant.",
    );
  }
  if (expectedMode === "none") {
    return failed(
      "it asks for a token, and none was expected",
      "Run the doctor without --auth none, or change AUTH_MODE.",
    );
  }
  const challenge = answer.headers.get("WWW-Authenticate") ?? "";
  const metadataUrl = /\bresource_metadata="([^"]+)"/.exec(challenge)?.[1];
  if (metadataUrl === undefined) {
    if (expectedMode !== "oauth") return ok("it asks for a static token (AUTH_MODE bearer)");
    return failed(
      "the refusal does not say where the authorization server is",
      "Set AUTH_MODE to oauth: MCP clients find the authorization server by the resource_metadata of a 401.",
    );
  }
  if (expectedMode === "bearer") return failed("it asks for OAuth, not for static tokens", "Set AUTH_MODE to bearer.");
  return checkMetadata(origin, metadataUrl);
}

/** Reads the metadata of the resource, then of the authorization server, as an MCP client does after a refusal. */
async function checkMetadata(origin: URL, metadataUrl: string): Promise<Finding> {
  const { ok, failed } = findings("authentication");
  const fix = "Check OAUTH_ISSUER and OAUTH_AUDIENCE of the edge; the audience is the address that clients connect to.";
  const metadata = await ask(metadataUrl);
  if (metadata.status !== 200) return failed(`no protected-resource metadata at ${metadataUrl}`, fix);
  const resource = field(metadata.text, "resource");
  if (typeof resource !== "string" || !URL.canParse(resource) || new URL(resource).origin !== origin.origin) {
    return failed(`the metadata is about ${resource}, not about ${origin.origin}`, fix);
  }
  const servers = field(metadata.text, "authorization_servers");
  const issuer: unknown = Array.isArray(servers) ? servers[0] : undefined;
  if (typeof issuer !== "string" || !URL.canParse(issuer)) {
    return failed("the metadata names no authorization server", fix);
  }
  for (const url of wellKnown(issuer)) {
    const server = await ask(url);
    if (server.status === 200 && field(server.text, "issuer") === issuer) {
      return ok(`OAuth, by the authorization server ${issuer}`);
    }
  }
  return failed(
    `the authorization server ${issuer} does not publish its metadata`,
    "OAUTH_ISSUER must be exactly the issuer of an authorization server that runs and is reachable from the internet.",
  );
}

/** The possible addresses of an issuer's metadata, by RFC 8414 and OpenID Connect Discovery. */
function wellKnown(issuer: string): URL[] {
  const { pathname } = new URL(issuer);
  const issuerPath = pathname === "/" ? "" : pathname.replace(/\/$/, "");
  const paths = ["oauth-authorization-server", "openid-configuration"].map(
    (name) => `/.well-known/${name}${issuerPath}`,
  );
  return [...paths, `${issuerPath}/.well-known/openid-configuration`].map((path) => new URL(path, issuer));
}
