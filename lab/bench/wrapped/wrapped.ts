/**
 * Calls that end at once, over stdio and HTTP: through `wrap`, directly to the server, and through a bare proxy made of the SDK's
 * client and server. `WRAP_CHECKOUT` names another checkout, or a package; its `wrap` is measured in turns with this one.
 */
import { existsSync } from "node:fs";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { execa } from "execa";
import { freePort } from "../../../testing/stack/port.ts";
import { type Program, run, until } from "../../../testing/stack/program.ts";
import { atLeast, atMost, type Figure, figure, spreadOf } from "../report/figures.ts";
import type { Bench } from "../setup/bench.ts";
import { LEGACY, mcpRequest, toolCall } from "../setup/mcp.ts";

const SERVER = resolve("lab/bench/wrapped/server.ts");
/** How long the calls of one client, and those of 16 clients, are measured at a time, in seconds. */
const ONE = 1;
const MANY = 1.5;

type Tool = "read" | "write";
const TOOLS: readonly Tool[] = ["read", "write"];

interface Side {
  name: string;
  url: string;
}

export async function measureWrapped(bench: Bench, rounds: number): Promise<Figure[]> {
  const figures: Figure[] = [];
  for (const way of ["HTTP", "stdio"] as const) figures.push(...(await measureOver(bench, way, rounds)));
  return figures;
}

async function measureOver({ generator }: Bench, way: "HTTP" | "stdio", rounds: number): Promise<Figure[]> {
  await using use = new AsyncDisposableStack();
  const server = await listening(use, {});
  const itself = { name: `the server itself, HTTP (beside ${way})`, url: server };
  const behind = way === "HTTP" ? server : `${process.execPath} ${SERVER}`;
  const proxy = { name: `a bare proxy, ${way}`, url: await listening(use, { BEHIND: behind }) };
  const wrap = { name: `wrap, ${way}`, url: (await startWrap(use, behind)).url };
  const checkout = process.env.WRAP_CHECKOUT;
  const other = checkout && { name: `wrap of ${checkout}, ${way}`, url: (await startWrap(use, behind, checkout)).url };
  const sides: Side[] = [itself, proxy, wrap, ...(other ? [other] : [])];

  const times = new Map(sides.map((side) => [side, { read: [] as number[], write: [] as number[] }]));
  const rates = new Map(sides.map((side) => [side, { read: [] as number[], write: [] as number[] }]));
  const load = async ({ url }: Side, tool: Tool, connections: number, seconds: number) => {
    const request = mcpRequest(LEGACY, toolCall(tool, {}));
    return generator.run({ url, ...request, connections, seconds, expect: `${tool} is done` });
  };
  for (const side of sides) for (const tool of TOOLS) await load(side, tool, 16, 1);
  for (let round = 0; round < rounds; round++) {
    for (const side of round % 2 === 0 ? sides : sides.toReversed()) {
      for (const tool of TOOLS) {
        times.get(side)?.[tool].push((await load(side, tool, 1, ONE)).p50);
        const { requests, seconds } = await load(side, tool, 16, MANY);
        rates.get(side)?.[tool].push(requests / seconds);
      }
    }
  }
  const of = (measured: typeof times, side: Side, tool: Tool) => measured.get(side)?.[tool] ?? [];
  const more = (side: Side, tool: Tool) =>
    spreadOf(of(times, side, tool).map((time, i) => time - (of(times, itself, tool)[i] ?? 0)));
  return TOOLS.flatMap((tool) => [
    ...sides.flatMap((side) => [
      figure(`${tool} through ${side.name}: median`, "ms", spreadOf(of(times, side, tool))),
      figure(`${tool} through ${side.name}, over 16 connections`, "a second", spreadOf(of(rates, side, tool))),
    ]),
    figure(`${tool} through ${wrap.name}: more than the server itself`, "ms", more(wrap, tool), atMost(5)),
    ...(other
      ? [
          figure(`${tool} through ${other.name}: more than the server itself`, "ms", more(other, tool)),
          figure(
            `${tool} through ${wrap.name}, as often as through the other`,
            "times",
            spreadOf(of(rates, wrap, tool).map((rate, i) => rate / (of(rates, other, tool)[i] ?? 1))),
            atLeast(3),
          ),
        ]
      : []),
  ]);
}

/** Starts the server or a proxy; returns its URL. */
async function listening(use: AsyncDisposableStack, env: Record<string, string>): Promise<string> {
  const port = await freePort();
  const server = use.use(run(SERVER, { env: { ...env, PORT: String(port) } }));
  await until("the server to listen", () => server.output().includes("listening"));
  return `http://127.0.0.1:${port}/mcp`;
}

/** Starts the `wrap` of a checkout in front of a URL or a command, with its state on disk. */
export async function startWrap(
  use: AsyncDisposableStack,
  behind: string,
  checkout = resolve("."),
): Promise<{ url: string; program: Program }> {
  const { scripts } = JSON.parse(await readFile(join(checkout, "package.json"), "utf8"));
  const [, source = ""] = String(scripts.wrap).split(" ");
  const main = existsSync(join(checkout, source)) ? source : "dist/cli/main.js";
  const data = await mkdtemp(join(tmpdir(), "bench-wrap-"));
  use.defer(() => rm(data, { recursive: true, force: true }));
  const ports = await Promise.all(
    ["--port", "--resonate-port", "--worker-port"].map(async (option) => [option, String(await freePort())]),
  );
  const target = behind.startsWith("http") ? ["--allow-private", behind] : ["--", ...behind.split(" ")];
  const args = ["wrap", "--name", `bench-${process.pid}`, "--data", data, ...ports.flat(), ...target];
  const program = run(join(checkout, main), { args, cwd: checkout, env: { RATE_LIMIT: "0" } });
  use.defer(async () => {
    program.signal("SIGINT");
    await program.exited;
  });
  const url = await until("wrap", () => /MCP endpoint +(\S+)/.exec(program.output())?.[1], 120_000).catch(() => {
    throw new Error(program.output());
  });
  return { url, program };
}

/** A process and all its descendants, with their ids and commands. */
export async function treeOf(pid: number): Promise<{ pid: number; command: string }[]> {
  const { stdout } = await execa("ps", ["-eo", "pid=,ppid=,args="]);
  const all = stdout.split("\n").map((line) => {
    const [, id, parent, command = ""] = /^\s*(\d+)\s+(\d+)\s+(.*)$/.exec(line) ?? [];
    return { pid: Number(id), parent: Number(parent), command };
  });
  const found = all.filter((each) => each.pid === pid);
  for (const each of found) found.push(...all.filter(({ parent }) => parent === each.pid));
  return found;
}
