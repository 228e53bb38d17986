import { describe, expect, test } from "vitest";
import { createApp } from "../../functions/app.ts";

const info = { name: "weather", title: "Weather", version: "1.2.0", websiteUrl: "https://example.com" };
const app = createApp({
  jobs: [],
  tools: [],
  identity: { info, description: "Gathers weather.", instructions: "" },
});
const BINDINGS = { RESONATE_URL: "http://127.0.0.1:1", LOG_LEVEL: "silent" };
const BEARER = {
  ...BINDINGS,
  AUTH_MODE: "bearer",
  BEARER_TOKENS: JSON.stringify([{ name: "ada", sha256: "0".repeat(64) }]),
};

async function read(url: string, env: object, headers: Record<string, string> = {}) {
  const response = await app.fetch(new Request(url, { headers: { host: new URL(url).host, ...headers } }), env);
  return { status: response.status, headers: response.headers, body: await response.json() };
}

describe("a server's card", () => {
  test("names the server and its address, for pages of any origin, without a token", async () => {
    const env = { ...BEARER, PUBLIC_URL: "https://mcp.example.com" };
    const origin = { origin: "https://elsewhere.example", accept: "application/mcp-server-card+json" };
    const { status, headers, body } = await read("https://other.workers.dev/mcp/server-card", env, origin);
    expect(status).toBe(200);
    expect(headers.get("content-type")).toBe("application/mcp-server-card+json");
    expect(headers.get("access-control-allow-origin")).toBe("*");
    expect(headers.get("cache-control")).toBe("public, max-age=3600");
    expect(body).toEqual({
      $schema: "https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json",
      name: "com.example.mcp/weather",
      version: "1.2.0",
      title: "Weather",
      description: "Gathers weather.",
      websiteUrl: "https://example.com",
      remotes: [
        {
          type: "streamable-http",
          url: "https://mcp.example.com/mcp",
          supportedProtocolVersions: ["2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"],
          headers: [{ name: "Authorization", description: expect.any(String), isRequired: true, isSecret: true }],
        },
      ],
    });
  });

  test("has the server's icon, where the deployment knows its own address", async () => {
    const env = { ...BEARER, PUBLIC_URL: "https://mcp.example.com", ASSETS: { fetch: () => {} } };
    const { body } = await read("https://mcp.example.com/mcp/server-card", env);
    expect(body.icons).toEqual([
      { src: "https://mcp.example.com/assets/icon.svg", mimeType: "image/svg+xml", sizes: ["any"] },
    ]);
  });

  test("asks for no header where clients get tokens by themselves or need none", async () => {
    const { body } = await read("http://127.0.0.1:8787/mcp/server-card", { ...BINDINGS, AUTH_MODE: "none" });
    expect(body).toMatchObject({ name: "localhost/weather", remotes: [{ url: "http://127.0.0.1:8787/mcp" }] });
    expect(body.remotes[0]).not.toHaveProperty("headers");
  });

  test("is not served to a page that makes its own name resolve to this machine", async () => {
    const env = { ...BINDINGS, AUTH_MODE: "none", ALLOWED_HOSTS: "127.0.0.1,localhost" };
    expect(await read("http://evil.example/mcp/server-card", env)).toMatchObject({ status: 403 });
  });
});

test("the catalog of a host leads to the card", async () => {
  const env = { ...BEARER, PUBLIC_URL: "https://mcp.example.com" };
  const { status, headers, body } = await read("https://mcp.example.com/.well-known/ai-catalog.json", env);
  expect([status, headers.get("content-type")]).toEqual([200, "application/ai-catalog+json"]);
  expect(headers.get("access-control-allow-origin")).toBe("*");
  const card = "https://mcp.example.com/mcp/server-card";
  expect(body).toEqual({
    specVersion: "1.0",
    entries: [
      { identifier: "urn:air:mcp.example.com:mcp:weather", type: "application/mcp-server-card+json", url: card },
    ],
  });
  expect((await read(card, env)).status).toBe(200);
});
