/**
 * Runs in its own network namespace, with public and private addresses and its own /etc/hosts: names resolve to a public
 * address while receivers are verified, and later to private ones. Prints which requests reached which address, as JSON.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:https";
import type { AddressInfo, Socket } from "node:net";
import { argv } from "node:process";
import { until } from "../../../testing/stack/program.ts";
import { bearerBindings } from "../../auth/support.ts";
import { startStack } from "../../support/stack.ts";
import { newSecret } from "../receiver.ts";
import { eventsAt } from "../support.ts";

const [folder = "", publicAddress = "", ...targets] = argv.slice(2);
const reached: { host: string; address: string; type: string }[] = [];
const receiver = createServer(
  { cert: readFileSync(`${folder}/cert.pem`), key: readFileSync(`${folder}/cert.key`) },
  async (request, response) => {
    let text = "";
    for await (const part of request) text += part;
    const { type = "event", challenge } = text ? JSON.parse(text) : { type: "document" };
    const host = request.headers.host?.split(":")[0] ?? "";
    reached.push({ host, address: request.socket.localAddress?.replace(/^::ffff:/, "") ?? "", type });
    response.setHeader("connection", "close").end(JSON.stringify({ challenge }));
  },
);
/** The local addresses on which connections arrived. */
const connected: string[] = [];
receiver.on("connection", ({ localAddress }: Socket) => connected.push(localAddress?.replace(/^::ffff:/, "") ?? ""));
await new Promise<void>((resolve) => receiver.listen(0, "::", resolve));
const { port } = receiver.address() as AddressInfo;

const names = targets.map((_, i) => `hooks${i}.example.com`);
const lead = (to: (name: string, i: number) => string[]) =>
  writeFileSync(
    `${folder}/hosts`,
    ["127.0.0.1 localhost", ...names.flatMap((name, i) => to(name, i).map((at) => `${at} ${name}`))].join("\n"),
  );

// A caller may have ten verifications a minute, so the names are spread over several callers.
const tokens = Object.fromEntries(
  Array.from({ length: Math.ceil(names.length / 8) }, (_, n) => [`c${n}`, `static-token-of-c${n}`]),
);
await using stack = await startStack({ own: true, bindings: bearerBindings(tokens) });
const callers = await Promise.all(Object.values(tokens).map((token) => eventsAt(stack.url, token)));
const secret = newSecret();
const subscribe = async (name: string, i: number) => {
  const delivery = { mode: "webhook", url: `https://${name}:${port}/hook`, secret };
  const granted = await callers[Math.floor(i / 8)]?.request("events/subscribe", { name: "job.ended", delivery });
  return (granted as { deliveryStatus?: { lastError: string | null } }).deliveryStatus?.lastError;
};
lead(() => [publicAddress]);
await Promise.all(names.map(subscribe));
const verified = reached.splice(0);

// The first name keeps its public address beside the private one.
connected.length = 0;
lead((_, i) => [targets[i] as string, ...(i === 0 ? [publicAddress] : [])]);
await Promise.all(callers.map((caller) => caller.start("set_timer", { timer_name: "rebound", seconds: 1 })));
const errors = await Promise.all(
  names.map((name, i) =>
    i === 0
      ? until("the delivery to the public one of two addresses", () => reached.some(({ host }) => host === name)).then(
          () => null,
        )
      : until(`the refusal of ${targets[i]}`, () => subscribe(name, i), 60_000),
  ),
);
const rebound = { reached: reached.splice(0), connected: [...new Set(connected)] };

lead(() => [publicAddress]);
await until("each to be told", () => names.slice(1).every((name) => reached.some(({ host }) => host === name)), 60_000);
for (const caller of callers) await caller[Symbol.asyncDispose]();
receiver.closeAllConnections();
receiver.close();
console.log(JSON.stringify({ verified, errors, rebound, again: reached }));
