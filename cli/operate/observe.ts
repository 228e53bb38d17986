/** `observe`: lets Resonate's own observability pages look at the server. */
import { once } from "node:events";
import { parseArgs } from "node:util";
import { serve } from "@hono/node-server";
import { readArguments } from "../arguments.ts";
import { readProject, typed } from "../project.ts";
import { inWords, SERVER_OPTIONS, SERVER_USAGE, serverOf } from "../server-of.ts";
import { createObserved } from "./observed.ts";

const usage = () => `Usage: ${typed(readProject(), "observe", "[options]")}

Resonate's observability pages (resonatehq/resonate-observability-web-ui) read by an earlier protocol than the server speaks.
This answers them on this machine, with what it reads from the server, and writes nothing. In their settings the server's
address is the one that is printed, without a token. It searches the server, which a token that is limited to a namespace may
not: an operator's may.

  --port PORT      where (default 8002)
  --most N         how many promises are looked through for one answer, at most (default 2000)
${SERVER_USAGE}
  --help           show this text
`;

export async function run(args: string[]): Promise<void> {
  const options = readArguments(() => {
    const own = { port: { type: "string", default: "8002" }, most: { type: "string", default: "2000" } } as const;
    const { values } = parseArgs({ args, options: { ...SERVER_OPTIONS, ...own, help: { type: "boolean" } } });
    if (values.help) return undefined;
    const [port, most] = [Number(values.port), Number(values.most)];
    if (!(port >= 0 && port < 65_536)) throw new Error("--port must be a port.");
    if (!(most >= 1)) throw new Error("--most must be a number from 1 on.");
    return { port, most, server: serverOf(values) };
  }, usage());
  if (!options) return;
  const { port, most, server } = options;
  const { client, namespace } = server;
  const app = createObserved({ client, namespace, most, inWords: (error) => inWords(error, server) });
  const listening = serve({ fetch: app.fetch, hostname: "127.0.0.1", port });
  await once(listening, "listening");
  const address = listening.address();
  console.log(`http://127.0.0.1:${typeof address === "object" ? address?.port : port} shows ${server.url}`);
}
