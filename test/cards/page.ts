/** Serves the host of cards: its page, and the frames that it creates, with the extension's content policy. */
import { randomUUID } from "node:crypto";
import { text } from "node:stream/consumers";
import { build } from "esbuild";
import { serveHttp } from "../../testing/stack/http-server.ts";

/** The content policy that the extension prescribes for a card without declared origins. */
const POLICY =
  "default-src 'none'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; " +
  "media-src 'self' data:; connect-src 'none'";

export interface HostPage extends AsyncDisposable {
  readonly origin: string;
}

export async function serveHost(): Promise<HostPage> {
  const built = await build({
    entryPoints: ["test/cards/host.ts"],
    bundle: true,
    format: "esm",
    target: "es2022",
    write: false,
    logLevel: "silent",
  });
  const script = built.outputFiles[0]?.text ?? "";
  const page = `<!doctype html><html lang="en"><title>host</title><style>body { margin: 16px } iframe { width: 100%; border: 0 }</style>
<body><script type="module" src="/host.js"></script></body></html>`;
  const frames = new Map<string, string>();
  const server = await serveHttp(async (request, response) => {
    const { method, url = "/" } = request;
    if (method === "POST") {
      const id = randomUUID();
      frames.set(id, await text(request));
      response.end(id);
    } else if (url === "/host.js") response.writeHead(200, { "content-type": "text/javascript" }).end(script);
    else if (url.startsWith("/frames/")) {
      const headers = { "content-type": "text/html; charset=utf-8", "content-security-policy": POLICY };
      response.writeHead(200, headers).end(frames.get(url.slice("/frames/".length)) ?? "");
    } else response.writeHead(200, { "content-type": "text/html; charset=utf-8" }).end(page);
  });
  return { origin: server.url, [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() };
}
