/** The message about a server whose URL does not accept requests of the protocol. */
import { expect, test } from "vitest";
import { serveHttp } from "../../testing/stack/http-server.ts";
import { WrappedServer } from "./wrapped-server.ts";

const SILENT_LOG = { debug() {}, info() {}, warn() {}, error() {} };

test.each([404, 405])(
  "a server that has only the HTTP with SSE transport, and answers %i, is refused with a sentence without its HTML",
  async (status) => {
    const page = `<!DOCTYPE html>\n<html><head><title>Error</title></head><body><pre>Cannot POST /sse</pre></body></html>`;
    await using server = await serveHttp((request, response) => {
      if (request.method === "GET") {
        response.writeHead(200, { "content-type": "text/event-stream" });
        response.write("event: endpoint\ndata: /messages?sessionId=1\n\n");
      } else response.writeHead(status, { "content-type": "text/html" }).end(page);
    });
    const url = `${server.url}/sse`;
    const definition = new WrappedServer({ name: "old", url, allowPrivate: true }, {});
    const message = await definition.currentSnapshot(SILENT_LOG).then(
      () => "it was reached",
      (error: Error) => error.message,
    );
    expect(message).toMatch(
      new RegExp(`^old cannot be reached: it answered ${status}: Cannot POST /sse\\. .*streamable HTTP`),
    );
    expect(message).not.toMatch(/[<>]/);
    await definition.close();
  },
);
