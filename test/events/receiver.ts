/** A receiver of web hooks, which checks signatures with the library that receivers use. */
import { randomBytes } from "node:crypto";
import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from "node:http";
import { createRequire } from "node:module";
import type { AddressInfo } from "node:net";
import { createAdaptorServer } from "@hono/node-server";

/** The library's own module is CommonJS. */
const { Webhook } = createRequire(import.meta.url)("standardwebhooks") as {
  Webhook: new (secret: string) => { verify(body: string, headers: Record<string, string>): unknown };
};

export interface Delivered {
  id: string;
  subscription: string;
  at: number;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into it as they know it to be
  body: any;
}

export const newSecret = () => `whsec_${randomBytes(32).toString("base64")}`;

/** How a receiver answers a delivery: with a status, or as a function does. */
export type Answer = number | ((response: ServerResponse, request: IncomingMessage) => void);

export async function startReceiver(secret: string) {
  const delivered: Delivered[] = [];
  const forged: string[] = [];
  const state: { answer: Answer; echoes: boolean; document: object | undefined } = {
    answer: 200,
    echoes: true,
    document: undefined,
  };
  const server = createServer((request, response) => {
    if (request.url === "/.well-known/mcp-webhook-receiver.json") {
      response.writeHead(state.document ? 200 : 404, { "content-type": "application/json" });
      return response.end(JSON.stringify(state.document ?? {}));
    }
    const parts: Buffer[] = [];
    request.on("data", (part) => parts.push(part));
    request.on("end", () => {
      const text = Buffer.concat(parts).toString();
      const headers = request.headers as Record<string, string>;
      try {
        new Webhook(secret).verify(text, headers);
      } catch {
        forged.push(text);
        return response.writeHead(401).end();
      }
      const body = JSON.parse(text);
      if (body.type === "verification") {
        const echo = state.echoes ? { challenge: body.challenge } : {};
        return response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(echo));
      }
      const { "webhook-id": id = "", "x-mcp-subscription-id": subscription = "" } = headers;
      delivered.push({ id, subscription, at: Date.now(), body });
      if (typeof state.answer === "number") response.writeHead(state.answer).end("x".repeat(100));
      else state.answer(response, request);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/hooks/mine`,
    secret,
    delivered,
    forged,
    state,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** Serves what answers requests as Workers do. */
export const serve = (answer: (request: Request) => Promise<Response>) =>
  at(createAdaptorServer({ fetch: answer }) as Server);

/** Serves what answers requests as Node does. */
export const listen = (answer: RequestListener) => at(createServer(answer));

async function at(server: Server) {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/hooks`,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
