/**
 * `npm run hosts [-- NAME…]`: installs each host from npm outside the checkout, sets the server up in it by the line that
 * `--config HOST` prints, runs it without a person against a scripted model on loopback, and prints the table of
 * lab/measurements.md. `--quick`: with a timer of 5 s instead of 90. `--cache DIR`: where the hosts are installed.
 * `--record DIR`: keeps each host's output and its model's requests. `--only WORD`: only scenarios whose names contain WORD.
 */
import { randomUUID } from "node:crypto";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { markdownTable } from "markdown-table";
import PQueue from "p-queue";
import { startEdge } from "../../cli/launcher/local-edge.ts";
import { startAuthorizationServer } from "../../test/auth/authorization-server.ts";
import { bearerBindings } from "../../test/auth/support.ts";
import { startStack } from "../../test/support/stack.ts";
import { drive } from "./drive.ts";
import { SERVER } from "./host-table.ts";
import { chosenHosts, install } from "./install.ts";
import { startModel } from "./model/endpoint.ts";
import { scenariosOf } from "./scenarios.ts";
import { startWire } from "./wire.ts";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    quick: { type: "boolean" },
    cache: { type: "string" },
    record: { type: "string" },
    only: { type: "string", default: "" },
  },
});
const cache = values.cache ?? join(tmpdir(), "hosts-cache");
const seconds = values.quick ? 5 : 90;
/** How long a host may take for one conversation, in milliseconds. */
const patience = (seconds + 90) * 1_000;

await using stack = await startStack({ bindings: { WAIT_SECONDS: "4" } });
await using issuer = await startAuthorizationServer([]);
const token = randomUUID();
const own = { RESONATE_GROUP: stack.group, RESONATE_NAMESPACE: stack.namespace };
const common = { ...stack.resonate.env, ...own, ALLOWED_HOSTS: "127.0.0.1,localhost" };
await using signedIn = await startEdge({
  port: 0,
  bindings: { ...common, ...bearerBindings({ ada: token }) },
  otherIsolates: [{ ...common, AUTH_MODE: "oauth", OAUTH_ISSUER: issuer.issuer }],
});

const [worker] = stack.workers;
const kills = new PQueue({ concurrency: 1 });
const killWorker = () =>
  kills.add(async () => {
    await worker?.kill();
    await worker?.start();
  });
const queue = new PQueue({ concurrency: 2 });
const hosts = chosenHosts(positionals);
const chosen = (run: string) => scenariosOf(run, seconds).filter(({ name }) => name.includes(values.only));
const columns = await Promise.all(
  hosts.map((host) =>
    queue.add(async () => {
      const command = await install(host, cache);
      await using wire = await startWire(stack.origin);
      await using model = await startModel();
      const servers = {
        none: { name: SERVER, url: wire.url },
        token: { name: SERVER, url: `${signedIn.url}/mcp`, token },
        OAuth: { name: SERVER, url: `${signedIn.otherUrls[0]}/mcp` },
      };
      const run = `${host.id}-${Math.floor(Math.random() * 36 ** 5).toString(36)}`;
      return await drive(
        host,
        { command, servers, wire, model, patience, killWorker, record: values.record },
        chosen(run),
      );
    }),
  ),
);
const heads = hosts.map(({ name, version }) => `${name} ${version}`);
const rows = chosen("").map(({ name }, row) => [name, ...columns.map((cells) => cells?.[row] ?? "")]);
console.log(markdownTable([["", ...heads], ...rows]));
