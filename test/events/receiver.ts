/** A receiver of web hooks, which checks signatures with the library that real receivers use. */
import { randomBytes } from "node:crypto";
import type { IncomingMessage, RequestListener, Server, ServerResponse } from "node:http";
import { createRequire } from "node:module";
import { createAdaptorServer } from "@hono/node-server";
import { type HttpServer, listen, serveHttp } from "../../testing/stack/http-server.ts";

/** The library's own module is CommonJS. */
const { Webhook } = createRequire(import.meta.url)("standardwebhooks") as {
  Webhook: new (secret: string) => { verify(body: string, headers: Record<string, string>): unknown };
};

export interface Delivered {
  id: string;
  subscription: string;
  at: number;
  /** Whether one of its signatures is made with a secret. */
  isSignedWith(secret: string): boolean;
  // oxlint-disable-next-line typescript/no-explicit-any -- each test knows the shape of its content
  body: any;
}

export const newSecret = () => `whsec_${randomBytes(32).toString("base64")}`;

/** How a receiver answers a delivery: with a status, or by a function. */
export type Answer = number | ((response: ServerResponse, request: IncomingMessage) => void);

export async function startReceiver(secret: string) {
  const delivered: Delivered[] = [];
  const forged: string[] = [];
  const state: { answer: Answer; echoes: boolean; document: object | undefined } = {
    answer: 200,
    echoes: true,
    document: undefined,
  };
  const server = await serveHttp((request, response) => {
    if (request.url === "/.well-known/mcp-webhook-receiver.json") {
      response.writeHead(state.document ? 200 : 404, { "content-type": "application/json" });
      return response.end(JSON.stringify(state.document ?? {}));
    }
    const parts: Buffer[] = [];
    request.on("data", (part) => parts.push(part));
    request.on("end", () => {
      const text = Buffer.concat(parts).toString();
      const headers = request.headers as Record<string, string>;
      const isSignedWith = (key: string) => {
        try {
          new Webhook(key).verify(text, headers);
          return true;
        } catch {
          return false;
        }
      };
      if (!isSignedWith(secret)) {
        forged.push(text);
        return response.writeHead(401).end();
      }
      const body = JSON.parse(text);
      if (body.type === "verification") {
        const echo = state.echoes ? { challenge: body.challenge } : {};
        return response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(echo));
      }
      const { "webhook-id": id = "", "x-mcp-subscription-id": subscription = "" } = headers;
      delivered.push({ id, subscription, at: Date.now(), isSignedWith, body });
      if (typeof state.answer === "number") response.writeHead(state.answer).end("x".repeat(100));
      else state.answer(response, request);
    });
  });
  return {
    url: `${server.url}/hooks/mine`,
    secret,
    delivered,
    forged,
    state,
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  };
}

/** Serves a handler in the form of Workers. */
export const serve = async (answer: (request: Request) => Promise<Response>) =>
  hooksAt(await listen(createAdaptorServer({ fetch: answer }) as Server));

/** Serves a handler in the form of Node. */
export const serveAsNode = async (answer: RequestListener) => hooksAt(await serveHttp(answer));

const hooksAt = (server: HttpServer): HttpServer => ({ ...server, url: `${server.url}/hooks` });
