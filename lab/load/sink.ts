/** A server that only reads each request to its end, to show the cost of a load for the machine. Prints its port. */
import { serve } from "@hono/node-server";
import { Hono } from "hono";

const app = new Hono().all("*", async (c) => {
  await c.req.arrayBuffer();
  return c.json({});
});
serve({ fetch: app.fetch, port: 0, hostname: "127.0.0.1" }, ({ port }) => console.log(port));
