/** Signing in from a page in a browser at an authorization server. */
import type { Browser, Page } from "playwright-core";
import { afterAll, expect, test } from "vitest";
import { type EdgeProcess, startEdge } from "../../cli/launcher/local-edge.ts";
import { freePort } from "../../testing/stack/port.ts";
import { ownGroup } from "../../testing/stack/worker-process.ts";
import { startBrowser, visit } from "../pages/browser.ts";
import { startResonate } from "../support/resonate.ts";
import { type AuthorizationServer, startAuthorizationServer } from "./authorization-server.ts";
import { callerAt } from "./support.ts";

const cleanup = new AsyncDisposableStack();
afterAll(() => cleanup.disposeAsync());

/** Registers a public client with a redirect URI, and returns its id. */
async function register(server: AuthorizationServer, redirectUri: string): Promise<string> {
  const client = {
    redirect_uris: [redirectUri],
    grant_types: ["authorization_code"],
    response_types: ["code"],
    token_endpoint_auth_method: "none",
    application_type: "native",
  };
  const headers = { "content-type": "application/json" };
  const response = await fetch(`${server.issuer}/reg`, { method: "POST", headers, body: JSON.stringify(client) });
  return (await response.json()).client_id;
}

const browser: Browser | undefined = await startBrowser();
if (browser) cleanup.defer(() => browser.close());

/** Starts a deployment whose callers, and visitors of its pages, sign in at `server`. */
async function deploy(server: AuthorizationServer) {
  const resonate = cleanup.use(await startResonate());
  const port = await freePort();
  const origin = `http://127.0.0.1:${port}`;
  const bindings = {
    AUTH_MODE: "oauth",
    OAUTH_ISSUER: server.issuer,
    OAUTH_CLIENT_ID: await register(server, `${origin}/jobs`),
    VIEW_KEY: "v".repeat(32),
    PUBLIC_URL: origin,
    ALLOWED_HOSTS: "127.0.0.1",
    ...resonate.env,
    ...ownGroup().env,
  };
  const edge: EdgeProcess = cleanup.use(await startEdge({ port, bindings }));
  const url = `${edge.url}/mcp`;
  const resource = `${origin}/mcp`;
  /** A caller with a token that was issued to another application, a chat. */
  const inChat = async (sub: string) => {
    const now = Math.floor(Date.now() / 1_000);
    const claims = { iss: server.issuer, aud: resource, scope: "mcp", client_id: "chat", iat: now, exp: now + 600 };
    return callerAt(url, await server.sign({ ...claims, sub }));
  };
  return { origin, url, resource, inChat };
}

/** Signs in as ada, from the list of jobs. */
async function signIn(page: Page): Promise<void> {
  await page.getByRole("button", { name: /^Sign in at 127\.0\.0\.1/ }).click();
  await page.locator("input[name=login]").fill("ada");
  await page.locator("input[name=password]").fill("any");
  await page.locator("button[type=submit]").click();
  await page.getByRole("button", { name: "Continue" }).click();
}

test.runIf(browser)("a caller who signs in sees only their own jobs", async () => {
  const server = cleanup.use(await startAuthorizationServer(["bob"]));
  const { origin, url, resource, inChat } = await deploy(server);
  const bob = callerAt(url, await server.issue("bob", resource));
  await bob.call("set_timer", { timer_name: "of bob", seconds: 3_600 });
  await (await inChat("ada")).call("set_timer", { timer_name: "of ada", seconds: 3_600 });

  await using visitor = await visit(browser as Browser, origin);
  const page = await visitor.open("/jobs");
  await signIn(page);
  await page.getByRole("link", { name: "timer_of ada" }).waitFor();
  expect(page.url()).toBe(`${origin}/jobs`);
  expect(await page.getByRole("link", { name: "timer_of bob" }).count()).toBe(0);
  const [session] = (await visitor.context.cookies(origin)).filter(({ name }) => name === "session");
  expect(session).toMatchObject({ httpOnly: true, sameSite: "Strict" });
  expect(visitor.complaints).toEqual([]);
});

test.runIf(browser)(
  "a caller whose subject differs per application is told so, and does not see the jobs of a chat",
  async () => {
    const server = cleanup.use(
      await startAuthorizationServer([], {
        subjectTypes: ["pairwise"],
        pairwiseIdentifier: (_context, accountId, { clientId }) => `${accountId} at ${clientId}`,
      }),
    );
    const { origin, inChat } = await deploy(server);
    await (await inChat("ada at chat")).call("set_timer", { timer_name: "of ada", seconds: 3_600 });

    await using visitor = await visit(browser as Browser, origin);
    const page = await visitor.open("/jobs");
    await page.getByText(`${server.issuer} names you differently to each application`).waitFor();
    await page.getByText("open those by the links that its tools return").waitFor();
    await signIn(page);
    await page.getByText("No jobs yet.").waitFor();
  },
);
