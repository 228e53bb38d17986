/** The upstream of both servers, in a separate process. It always serves the same month. Its first message is its URL. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { answerRequest } from "../../../tools/weather/sample-archive/archive.ts";

const month = new URLSearchParams({
  latitude: "47.6",
  longitude: "-122.3",
  start_date: "2013-05-01",
  end_date: "2013-05-31",
  daily: "temperature_2m_max,temperature_2m_min,precipitation_sum",
  timezone: "auto",
});
const body = Buffer.from(JSON.stringify(answerRequest(month)));
const headers = { "content-type": "application/json", "content-length": body.length };
const server = createServer({ noDelay: true, keepAliveTimeout: 0 }, (_req, res) =>
  res.writeHead(200, headers).end(body),
);
server.listen(0, "127.0.0.1", () => process.send?.(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`));
process.on("disconnect", () => process.exit());
