import http from "node:http";
import https from "node:https";
import { text } from "node:stream/consumers";
import type { Exchange } from "../../core/resonate/connection/client.ts";

/** The statuses that ask to repeat the request at another address. */
const REDIRECT_STATUSES = [307, 308];
const MAX_REDIRECTS = 5;

/** Posts with Node's global agents, which keep connections and use a proxy as `fetch` does, but have less overhead. */
export const post: Exchange = async (url, body, { timeout, signal, type = "application/json" }) => {
  // Uses a controller per request, because timeout signals would stay in memory until they are due.
  const ended = new AbortController();
  const late = () => ended.abort(new DOMException("no answer in time", "TimeoutError"));
  const leave = () => ended.abort(signal?.reason);
  const timer = setTimeout(late, timeout);
  if (signal?.aborted) leave();
  else signal?.addEventListener("abort", leave, { once: true });
  const options = { method: "POST", headers: { "content-type": type }, signal: ended.signal };
  try {
    for (let target = url, redirects = 0; ; redirects++) {
      const answer = await send(target, body, options);
      const { statusCode: status = 0, headers } = answer;
      const content = await text(answer);
      if (!REDIRECT_STATUSES.includes(status) || !headers.location || redirects === MAX_REDIRECTS)
        return { status, text: content };
      target = new URL(headers.location, target).href;
    }
  } catch (error) {
    // The request's own error says only that it was aborted; this throws the reason.
    ended.signal.throwIfAborted();
    throw error;
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", leave);
  }
};

function send(url: string, body: string, options: http.RequestOptions): Promise<http.IncomingMessage> {
  const { request } = url.startsWith("https:") ? https : http;
  return new Promise((resolve, reject) => {
    request(url, options, resolve).on("error", reject).end(body);
  });
}
