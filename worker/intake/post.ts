import http, { type IncomingMessage } from "node:http";
import https from "node:https";
import { text } from "node:stream/consumers";
import type { Exchange } from "../../core/store/connection/client.ts";

/** The statuses that ask to repeat the request at another address. */
const REDIRECTS = [307, 308];
const MAX_REDIRECTS = 5;

/** How long a connection is kept without a request, in milliseconds: shorter than servers and routers on the way keep it. */
const IDLE = 4_000;

/** `type`: the content type of the body; JSON by default. */
type PostOptions = Parameters<Exchange>[2] & { type?: string };

export type Post = (url: string, body: string, options: PostOptions) => ReturnType<Exchange>;

/** Posts over kept-alive connections, without the overhead of `fetch`. Uses a proxy where `fetch` does. */
export function createPost(env: NodeJS.ProcessEnv): Post {
  const options = { keepAlive: true, timeout: IDLE, ...(env.NODE_USE_ENV_PROXY === "1" && { proxyEnv: env }) };
  const plain = new http.Agent(options);
  const secure = new https.Agent(options);
  const send = async (
    target: string,
    body: string,
    options: { headers: Record<string, string>; signal: AbortSignal },
  ) => {
    const init = { ...options, method: "POST" };
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
    const request = target.startsWith("https:")
      ? https.request(target, { ...init, agent: secure })
      : http.request(target, { ...init, agent: plain });
    request.on("response", resolve).on("error", reject).end(body);
    const answer = await promise;
    return { status: answer.statusCode ?? 0, location: answer.headers.location, text: await text(answer) };
  };
  return async (url, body, { timeout, signal, type = "application/json" }) => {
    // One controller per request: timeout signals would stay in memory until they are due.
    const ended = new AbortController();
    const late = () => ended.abort(new DOMException("no answer in time", "TimeoutError"));
    const leave = () => ended.abort(signal?.reason);
    const timer = setTimeout(late, timeout);
    if (signal?.aborted) leave();
    else signal?.addEventListener("abort", leave, { once: true });
    try {
      for (let target = url, redirects = 0; ; redirects++) {
        const { status, location, text } = await send(target, body, {
          headers: { "content-type": type },
          signal: ended.signal,
        });
        if (!REDIRECTS.includes(status) || !location || redirects === MAX_REDIRECTS) return { status, text };
        target = new URL(location, target).href;
      }
    } catch (error) {
      // The request says only that it was aborted.
      ended.signal.throwIfAborted();
      throw error;
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener("abort", leave);
    }
  };
}
