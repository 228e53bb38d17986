/** Preloaded into a worker (`--import`): writes the origin of every HTTP request the process makes to stderr. */
import { channel } from "node:diagnostics_channel";
import type { ClientRequest } from "node:http";

const record = (origin: string) => process.stderr.write(`${JSON.stringify({ msg: "request", origin })}\n`);

channel("undici:request:create").subscribe((message) => {
  const { request } = message as { request: { origin: string } };
  record(new URL(request.origin).origin);
});
channel("http.client.request.start").subscribe((message) => {
  const { request } = message as { request: ClientRequest };
  record(`${request.protocol}//${request.getHeader("host")}`);
});
