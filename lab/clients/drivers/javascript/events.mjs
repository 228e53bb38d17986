/** The steps of a client with events sent to a web hook: verification, delivery, the Standard Webhooks signature, and the end. */
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { RUN, step } from "./steps.mjs";

const { Webhook } = createRequire(import.meta.url)("standardwebhooks");

/** How long a step waits for a delivery, in milliseconds. */
const PATIENCE = 60_000;

/**
 * `receive` answers a delivery as the client's own handler does; `subscribe` subscribes an address to the ends of jobs and resolves
 * with the secret; `start` calls a tool; `unsubscribe` ends the subscription. `told` holds the events that the handler passed on.
 */
export async function driveEvents({ receive, subscribe, unsubscribe, start, told }) {
  let secret = "";
  const seen = [];
  const server = createServer((request, response) => {
    const parts = [];
    request.on("data", (part) => parts.push(part));
    request.on("end", async () => {
      const body = Buffer.concat(parts);
      seen.push({ headers: request.headers, body: body.toString() });
      const { method, headers, url } = request;
      const answer = await receive(new Request(`http://127.0.0.1${url}`, { method, headers, body }));
      response.writeHead(answer.status, Object.fromEntries(answer.headers)).end(await answer.text());
    });
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${server.address().port}/hook`;
  const timer = `w${RUN}`;
  await step("web hook: subscribed", async () => {
    secret = await subscribe(url);
    return JSON.parse(seen[0]?.body ?? "{}").type === "verification" || seen;
  });
  await step("web hook: told of the end", async () => {
    await start("set_timer", { timer_name: timer, seconds: 1 });
    const end = Date.now() + PATIENCE;
    const isTold = () => told.some(({ data }) => data.job_name === `timer_${timer}` && data.status === "complete");
    while (!isTold() && Date.now() < end) await new Promise((resolve) => setTimeout(resolve, 100));
    return isTold() || seen;
  });
  await step("web hook: signatures by standardwebhooks", async () => {
    for (const { headers, body } of seen) new Webhook(secret).verify(body, headers);
    try {
      new Webhook(secret).verify(`${seen[0].body} `, seen[0].headers);
    } catch {
      return seen.length > 1 || seen;
    }
    return "a changed body was verified";
  });
  await step("web hook: ended", async () => {
    await unsubscribe();
    return true;
  });
  server.closeAllConnections();
  server.close();
}
