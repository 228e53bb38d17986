/** Loaded into the Node host before its program. Holds `Date`, and logs the URL at which a `POST` sets it. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { holdDate } from "./held-date.ts";

const setTime = holdDate();

const server = createServer(async (request, response) => {
  setTime(Number(await text(request)));
  response.end();
});
server.unref();
server.listen(0, "127.0.0.1", () => {
  const { port } = server.address() as AddressInfo;
  console.log(JSON.stringify({ msg: "clock", url: `http://127.0.0.1:${port}` }));
});
