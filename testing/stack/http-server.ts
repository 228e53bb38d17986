import { once } from "node:events";
import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";

/** An HTTP server on a free port, for a test's own purposes. */
export interface HttpServer extends AsyncDisposable {
  /** Its origin. */
  readonly url: string;
  [Symbol.asyncDispose](): Promise<void>;
}

export const serveHttp = (listener: RequestListener): Promise<HttpServer> => listen(createServer(listener));

export async function listen(server: Server): Promise<HttpServer> {
  await once(server.listen(0, "127.0.0.1"), "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      const closed = new Promise((resolve) => server.close(resolve));
      server.closeAllConnections();
      await closed;
    },
  };
}
