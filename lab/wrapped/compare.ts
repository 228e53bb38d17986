/** Compares real servers, directly and through the wrap: their lists, answers, progress reports and refusals. */
import { mkdtemp, readFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { Client, type Progress, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { execa } from "execa";
import { connect, wrappedStack } from "../../test/wrap/support.ts";
import { freePort } from "../../testing/stack/port.ts";
import { until } from "../../testing/stack/program.ts";
import { installServers, type RealServer } from "./real-servers.ts";

/** The longest wait, in milliseconds. */
const PATIENCE = 60_000;

/** The expected differences, which docs/wrap.md describes. */
const NAMED: readonly [difference: RegExp, words: string][] = [
  [/^tools\/list \S+ (added|outputSchema|job_name|card)$/, "what is added to the list of tools"],
  [/^tools\/list \S+ execution$/, "which tools are tasks is the edge's to say"],
  [/^resources\/templates\/list job:\S+ added$/, "the address of jobs among the templates"],
  [/ (ttlMs|cacheScope)$/, "how long an answer may be kept is the edge's to say"],
  [/ prefix$/, "the message of an error begins with the server's name"],
  [/^(tools\/call|prompts\/get) none /, "what is not listed is refused by the edge"],
  [/^\S+\/list empty$/, "an empty list is not announced"],
];

interface Seen {
  [what: string]: unknown;
}

export async function compare(only: string | undefined): Promise<string[]> {
  const problems: string[] = [];
  for (const server of await installServers()) {
    if (only === undefined || only.split(",").includes(server.name)) problems.push(...(await compareOne(server)));
    await server[Symbol.asyncDispose]?.();
  }
  return problems;
}

async function compareOne(server: RealServer): Promise<string[]> {
  const { name } = server;
  const sent = join(await mkdtemp(join(tmpdir(), "sent-")), "sent");
  const problems: string[] = [];
  for (const era of ["2025", "2026"] as const) {
    await using use = new AsyncDisposableStack();
    const own = await reached(server, `direct-${era}`, sent, use);
    const direct = new Client({ name: "test", version: "1.0.0" }, { versionNegotiation: { mode: "auto" } });
    await direct.connect(
      own.url === undefined
        ? new StdioClientTransport({ ...own, stderr: "ignore" })
        : new StreamableHTTPClientTransport(new URL(own.url)),
    );
    const behind = await reached(server, `wrapped-${era}`, sent, use);
    const stack = use.use(await wrappedStack({ name, ...behind }, { atOnce: true }));
    const through = await connect(stack.url, era);
    const [there, here] = [
      await seen(direct, server, `${sent}-direct-${era}`),
      await seen(through, server, `${sent}-wrapped-${era}`),
    ];
    await Promise.all([direct.close(), through.close()]);
    const found = differences(there, here);
    const counts = new Map<string, number>();
    for (const difference of found) {
      const words = NAMED.find(([pattern]) => pattern.test(difference.split(": ")[0] ?? ""))?.[1];
      if (words === undefined) problems.push(`${name} ${era}: ${difference}`);
      else counts.set(words, (counts.get(words) ?? 0) + 1);
    }
    console.log(`${name}, a client of ${era}: ${Object.keys(there).length} answers compared`);
    for (const problem of problems) console.log(`  ${problem}`);
    for (const [words, count] of counts) console.log(`  ${count} times: ${words}`);
  }
  return problems;
}

/** How an instance of a server is reached: as a program whose messages are recorded in a file, or at its address. */
async function reached(server: RealServer, which: string, sent: string, use: AsyncDisposableStack) {
  const env = { PATH: process.env.PATH ?? "", ...server.env(which) };
  if (!server.overHttp) {
    const args = ["-c", 'tee -a "$SENT" | "$0" "$@"', server.command, ...server.args];
    return { command: "sh", args, env: { ...env, SENT: `${sent}-${which}` } };
  }
  const port = await freePort();
  const url = `http://127.0.0.1:${port}/mcp`;
  const program = execa(server.command, server.args, {
    env: { ...env, PORT: String(port) },
    stdio: "ignore",
    reject: false,
  });
  use.defer(async () => {
    program.kill("SIGKILL");
    await program;
  });
  const answers = () =>
    fetch(url).then(
      () => true,
      () => false,
    );
  await until("the server to answer", answers, PATIENCE);
  return { url, allowPrivate: true };
}

/** Everything that a client sees of a server. */
async function seen(client: Client, server: RealServer, sent: string): Promise<Seen> {
  const all: Seen = {};
  const look = async (what: string, answer: () => Promise<object>) => {
    all[what] = await answer().then(
      ({ _meta, ...result }: { _meta?: unknown }) => result,
      ({ code, message, data }) => ({ code, data, message: String(message).replace(/^MCP error -?\d+: /, "") }),
    );
  };
  const { prompts, resources } = client.getServerCapabilities() ?? {};
  await look("tools/list", () => client.listTools());
  if (prompts) await look("prompts/list", () => client.listPrompts());
  const listed = resources && server.name.startsWith("everything") ? await client.listResources() : undefined;
  if (listed) {
    await look("resources/list", async () => listed);
    await look("resources/templates/list", () => client.listResourceTemplates());
    for (const { uri } of listed.resources.slice(0, 2))
      await look(`resources/read ${uri}`, () => client.readResource({ uri }));
    await look("resources/read none", () => client.readResource({ uri: "demo://resource/none" }));
  }
  for (const [name, args = {}] of server.calls)
    await look(`tools/call ${name} ${JSON.stringify(args)}`, () => client.callTool({ name, arguments: args }));
  for (const [name, args] of server.prompts)
    await look(`prompts/get ${name} ${JSON.stringify(args)}`, () =>
      client.getPrompt({ name, ...(args && { arguments: args }) }),
    );
  if (server.progress) {
    const [name, args = {}] = server.progress;
    const progress: Progress[] = [];
    await client.callTool({ name, arguments: args }, { onprogress: (each) => progress.push(each) });
    // The last report arrives together with the answer, and clients may ignore it then, also without the wrap.
    all["notifications/progress"] = progress.filter(({ progress, total }) => progress !== total);
  }
  if (server.cancel) {
    const [name, args = {}] = server.cancel;
    const count = async () => (await readFile(sent, "utf8")).split('"notifications/cancelled"').length;
    const calls = async () => (await readFile(sent, "utf8")).split(`"name":"${name}"`).length;
    const [before, called] = [await count(), await calls()];
    const controller = new AbortController();
    const call = client.callTool({ name, arguments: args }, { signal: controller.signal }).catch(() => {});
    await until("the call", async () => (await calls()) > called, PATIENCE);
    controller.abort();
    await call;
    await until("the server to hear of the cancellation", async () => (await count()) > before, PATIENCE);
    all["notifications/cancelled"] = true;
  }
  return all;
}

/** The differences, one line each: the subject, then both values. */
function differences(there: Seen, here: Seen): string[] {
  const found: string[] = [];
  const hold = (what: string, a: unknown, b: unknown) => {
    if (!isDeepStrictEqual(timeless(a), timeless(b)))
      found.push(`${what}: directly ${shown(a)}, through the wrap ${shown(b)}`);
  };
  for (const [what, answer] of Object.entries(there)) {
    const list = listIn(answer);
    const other = listIn(here[what]);
    if (list && other) {
      for (const [name, entry] of list) {
        const { job_name, card, ...rest } = entryOf(other.get(name));
        const { job_name: _, card: __, ...own } = entryOf(entry);
        for (const field of new Set([...Object.keys(own), ...Object.keys(rest)]))
          hold(`${what} ${name} ${field}`, own[field], rest[field]);
        if (job_name !== undefined) found.push(`${what} ${name} job_name: `);
        if (card !== undefined) found.push(`${what} ${name} card: `);
      }
      for (const name of other.keys()) if (!list.has(name)) found.push(`${what} ${name} added: `);
    } else {
      if (list?.size === 0 && here[what] === undefined) {
        found.push(`${what} empty: `);
        continue;
      }
      const [a, b] = [answer, here[what]].map((each) => ({ ...(each as Record<string, unknown>) }));
      const prefixed = String(b?.message).replace(/^[\w-]+: (MCP error -?\d+: )?/, "");
      if (b && a?.message === prefixed) {
        b.message = prefixed;
        found.push(`${what} prefix: `);
      }
      for (const field of new Set([...Object.keys(a ?? {}), ...Object.keys(b ?? {})]))
        hold(`${what} ${field}`, a?.[field], b?.[field]);
    }
  }
  return found;
}

/** The entries of a list by name or address. */
function listIn(answer: unknown): Map<string, Record<string, unknown>> | undefined {
  const { tools, prompts, resources, resourceTemplates } = Object(answer);
  const list = tools ?? prompts ?? resources ?? resourceTemplates;
  return Array.isArray(list)
    ? new Map(list.map((each) => [each.uri ?? each.uriTemplate ?? each.name, each]))
    : undefined;
}

/** An entry of a list, with the wrap's additions separated from it. */
function entryOf({ _meta, inputSchema, ...rest }: Record<string, unknown> = {}): Record<string, unknown> {
  const { ui: card, ...meta } = { ...(_meta as object) } as { ui?: unknown };
  const { properties, ...schema } = { ...(inputSchema as object) } as { properties?: Record<string, unknown> };
  const { job_name, ...own } = { ...properties };
  const shownMeta = Object.keys(meta).length > 0 ? { _meta: meta } : {};
  return { ...rest, ...shownMeta, job_name, card, inputSchema: { ...schema, ...(properties && { properties: own }) } };
}

/** The value without times of day, which are those of the call. */
const timeless = (value: unknown): unknown =>
  value === undefined
    ? undefined
    : JSON.parse(JSON.stringify(value).replace(/\d+:\d+:\d+( [AP]M|\.\d+)?|T\d\d-\d\d-\d\d-\d+Z/g, "then"));

const shown = (value: unknown): string => (JSON.stringify(value) ?? "nothing").slice(0, 300);
