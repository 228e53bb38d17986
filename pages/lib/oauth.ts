/** Signs a browser in at the authorization server, with the authorization-code flow of a public client and PKCE. */
import * as oauth from "oauth4webapi";
import type { About } from "./server.ts";

/** The state of the flow while the browser is at the authorization server. */
interface Flow {
  state: string;
  verifier: string;
}
const FLOW_KEY = "sign-in";

/** The metadata of this server, for which tokens are issued. */
interface Resource {
  resource: string;
  scopes_supported?: string[];
}

async function discover({ issuer = "", client_id = "" }: About) {
  const url = new URL(issuer);
  const options = { [oauth.allowInsecureRequests]: true };
  const find = async (algorithm: "oidc" | "oauth2") =>
    oauth.processDiscoveryResponse(url, await oauth.discoveryRequest(url, { algorithm, ...options }));
  const server = await find("oidc").catch(() => find("oauth2"));
  const about: Resource = await (await fetch("/.well-known/oauth-protected-resource/mcp")).json();
  return { server, client: { client_id }, about, options };
}

const redirectUri = () => new URL("/jobs", location.href).href;

/** Whether the authorization server names a user differently to each application. If so, a browser sees none of a client's jobs. */
export async function hidesSubjects(deployment: About): Promise<boolean> {
  const { server } = await discover(deployment);
  const types = server.subject_types_supported;
  return types !== undefined && types.length > 0 && !types.includes("public");
}

/** Sends the browser to the authorization server. */
export async function leave(deployment: About): Promise<void> {
  const { server, client, about } = await discover(deployment);
  if (server.authorization_endpoint === undefined)
    throw new Error("The authorization server does not let browsers sign in.");
  const flow: Flow = { state: oauth.generateRandomState(), verifier: oauth.generateRandomCodeVerifier() };
  sessionStorage.setItem(FLOW_KEY, JSON.stringify(flow));
  const url = new URL(server.authorization_endpoint);
  const parameters = {
    response_type: "code",
    client_id: client.client_id,
    redirect_uri: redirectUri(),
    scope: (about.scopes_supported ?? []).join(" "),
    resource: about.resource,
    state: flow.state,
    code_challenge: await oauth.calculatePKCECodeChallenge(flow.verifier),
    code_challenge_method: "S256",
  };
  for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value);
  location.assign(url);
}

/** Whether the browser has come back from the authorization server. */
export const isBack = (): boolean =>
  sessionStorage.getItem(FLOW_KEY) !== null && /[?&](code|error)=/.test(location.search);

/** Exchanges the code with which the browser came back for an access token. @throws {Error} with the authorization server's message */
export async function arrive(deployment: About): Promise<string> {
  const { state, verifier }: Flow = JSON.parse(sessionStorage.getItem(FLOW_KEY) ?? "{}");
  sessionStorage.removeItem(FLOW_KEY);
  const here = new URL(location.href);
  // The code can be used once, and must not stay in the address bar.
  history.replaceState(null, "", here.pathname);
  const { server, client, about, options } = await discover(deployment);
  const parameters = oauth.validateAuthResponse(server, client, here, state);
  const response = await oauth.authorizationCodeGrantRequest(
    server,
    client,
    oauth.None(),
    parameters,
    redirectUri(),
    verifier,
    { ...options, additionalParameters: { resource: about.resource } },
  );
  const { access_token } = await oauth.processAuthorizationCodeResponse(server, client, response);
  return access_token;
}
