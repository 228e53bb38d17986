import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, join, resolve } from "node:path";
import { setTimeout } from "node:timers/promises";
import { execa } from "execa";
import { hostSetups, type Server } from "../../core/tools/index.ts";
import { type Host, writeFiles } from "./host-table.ts";

/** A host in its own home folder, set up with a server and a model. */
export interface Home extends AsyncDisposable {
  /** Runs the host, optionally in its own terminal, until it ends, `patience` is over, or it is killed with all its children. */
  run(args: string[], where?: "in a terminal"): Run;
}

export interface Run {
  readonly ended: Promise<{ printed: string; failed: boolean; timedOut: boolean }>;
  /** Types a line into the host's terminal. */
  type(line: string): Promise<void>;
  kill(): void;
}

/** The names of the programs that open a browser. */
const BROWSERS = ["xdg-open", "sensible-browser", "x-www-browser", "www-browser"];

/** Sets a host up with the line of `--config HOST`. @throws {Error} with the host's output if it refuses that line */
export async function makeHome(
  host: Host,
  command: string,
  { server, model, patience }: { server: Server; model: string; patience: number },
): Promise<Home> {
  const home = await mkdtemp(join(tmpdir(), "host-"));
  const remove = async () => {
    // Some hosts leave processes behind.
    const { stdout } = await execa("ps", ["-eo", "pid,args"]);
    for (const [, pid] of stdout.matchAll(new RegExp(`^ *(\\d+) .*${home}/`, "gm"))) end(Number(pid));
    await rm(home, { recursive: true, force: true, maxRetries: 5 });
  };
  const [cwd, bin] = [join(home, "project"), join(home, "bin")];
  await Promise.all([mkdir(cwd), mkdir(bin), writeFiles(host, home, cwd, model)]);
  await writeBrowsers(bin);
  const env = {
    PATH: `${bin}${delimiter}${process.env.PATH}`,
    HOME: home,
    TERM: "xterm-256color",
    CI: "1",
    BROWSER: join(bin, "xdg-open"),
    DISPLAY: ":0",
    ...(server.token && { MCP_TOKEN: server.token }),
    ...host.env?.(model),
  };
  const run: Home["run"] = (args, where) => runHost([command, ...args], { cwd, env, patience }, where);
  const { paste = "" } = hostSetups(server).find(({ id }) => id === host.id) ?? {};
  const { failed, printed } = await run(wordsOf(paste).slice(1)).ended;
  if (failed) {
    await remove();
    throw new Error(`${paste}\n${printed}`);
  }
  if (host.prepare) await run(host.prepare(model)).ended;
  return { run, [Symbol.asyncDispose]: remove };
}

/** Writes programs that take the place of the machine's browsers. */
async function writeBrowsers(bin: string): Promise<void> {
  const script = `#!/bin/sh\nexec '${process.execPath}' '${resolve("lab/hosts/browser.ts")}' "$@"\n`;
  await Promise.all(BROWSERS.map((name) => writeFile(join(bin, name), script, { mode: 0o755 })));
}

interface HostOptions {
  cwd: string;
  /** The whole environment. */
  env: Record<string, string>;
  /** The longest run, in milliseconds. */
  patience: number;
}

function runHost(words: string[], { cwd, env, patience }: HostOptions, where?: "in a terminal"): Run {
  const program = spawnHost(words, { cwd, env }, where);
  let timedOut = false;
  const kill = () => {
    if (program.pid !== undefined) end(-program.pid);
  };
  const timer = globalThis.setTimeout(() => {
    timedOut = true;
    kill();
  }, patience);
  const ended = program.then(({ all, failed }) => {
    clearTimeout(timer);
    return { printed: all ?? "", failed: failed === true, timedOut };
  });
  const type = async (line: string) => {
    if (!program.stdin?.writable) return;
    program.stdin.write(line);
    // Hosts treat keys that arrive together as a paste.
    await setTimeout(500);
    program.stdin.write("\r");
  };
  return { ended, type, kill };
}

/** Starts a command in a process group of its own, optionally in a terminal. */
function spawnHost(words: string[], { cwd, env }: Pick<HostOptions, "cwd" | "env">, where?: "in a terminal") {
  const options = { cwd, env, extendEnv: false, reject: false, all: true, detached: true } as const;
  const [command = "", ...args] = words;
  if (!where) return execa(command, args, { ...options, stdin: "ignore" });
  const line = words.map((word) => `'${word}'`).join(" ");
  const terminal = ["--quiet", "--return", "--command", line, "/dev/null"];
  return execa("script", terminal, { ...options, stdin: "pipe" });
}

/** Kills a process, or with a negative id a process group. */
function end(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // The process has already ended.
  }
}

/** The words of a command line, some of which may be quoted. */
const wordsOf = (line: string): string[] =>
  [...line.matchAll(/"([^"]*)"|\S+/g)].map(([word, quoted]) => quoted ?? word);
