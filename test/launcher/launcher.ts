import { once } from "node:events";
import { existsSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { resolve } from "node:path";
import { execa } from "execa";
import { startChild } from "../../cli/process/child.ts";
import { freePort } from "../../testing/stack/port.ts";
import { type Program, until, untilProgram, watch } from "../../testing/stack/program.ts";

/** A launcher as a user starts it, and the processes that it has started. */
export interface Launcher extends Program {
  readonly ports: { edge: number; resonate: number; worker: number };
  readonly url: string;
  /** Waits until `text` was printed `times` times. */
  printed(text: string | RegExp, times?: number): Promise<string>;
  /** The launcher and all its current descendants, the launcher first. */
  family(): Promise<Process[]>;
  /** The one descendant whose command line contains `text`. Rejects if there is none or several. */
  member(text: string): Promise<Process>;
  /** Sends SIGINT to the whole process group, as a terminal does at Ctrl-C. */
  interrupt(): void;
}

export interface Process {
  pid: number;
  parent: number;
  command: string;
}

interface LaunchOptions {
  args?: string[];
  /** Added to the environment of the tests, from which their Resonate server is removed. */
  env?: Record<string, string | undefined>;
  /** Whether to run `npm start` or the command itself. */
  via?: "npm" | "node";
  command?: "start" | "dev";
  /** Ports that are not given are free ones. With `false` no port options are passed. */
  ports?: Partial<Launcher["ports"]> | false;
  /** The folder of the project; by default, this checkout. */
  cwd?: string;
  /** Runs the launcher in a terminal of this size. */
  terminal?: { columns: number; rows: number };
}

export async function launch(launching: LaunchOptions = {}) {
  const { args = [], env = {}, via = "npm", command = "start", ports: given = {}, cwd, terminal } = launching;
  const ports = { edge: await freePort(), resonate: await freePort(), worker: await freePort(), ...given };
  const asked = ["--port", ports.edge, "--resonate-port", ports.resonate, "--worker-port", ports.worker].map(String);
  const options = given === false ? [] : asked;
  const script = command === "start" ? ["start"] : ["run", command];
  // A copy of this checkout has its own command line.
  const main = [resolve(cwd ?? "", "cli/main.ts"), resolve("cli/main.ts")].find((path) => existsSync(path)) ?? "";
  const [file, words] = via === "npm" ? ["npm", [...script, "--"]] : [process.execPath, [main, command]];
  const line = [file, ...words, ...options, ...args];
  const [run = "", ...others] = terminal ? atTerminal(line, terminal) : line;
  const child = startChild(run, others, {
    env: { ...process.env, RESONATE_URL: "", RESONATE_TOKEN: "", ...env },
    grace: 60_000,
    cwd,
  });
  const program = watch(child);
  const family = async () => descendants(program.pid);
  const launcher: Launcher = {
    ...program,
    ports,
    url: `http://127.0.0.1:${ports.edge}/mcp`,
    printed: (text, times = 1) =>
      untilProgram(program, `the launcher prints ${text} ${times} times`, () =>
        program.output().split(text).length > times ? program.output() : undefined,
      ),
    family,
    member: async (text) => {
      const found = (await family()).slice(1).filter(({ command }) => command.includes(text));
      if (found.length !== 1 || !found[0]) throw new Error(`${found.length} processes have ${text}`);
      return found[0];
    },
    interrupt: () => void process.kill(-program.pid, "SIGINT"),
  };
  return launcher;
}

/** Ends a launcher with SIGINT. Rejects if it fails. */
export async function end(launcher: Launcher): Promise<void> {
  launcher.signal("SIGINT");
  const { exitCode } = await launcher.exited;
  if (exitCode !== 0) throw new Error(`the launcher ended with ${exitCode}; it printed:\n${launcher.output()}`);
}

/** Takes a port, as another program does; by default, a free one. Rejects if it is taken already. */
export async function takePort(port = 0): Promise<{ port: number } & Disposable> {
  const server = createServer().listen(port, "127.0.0.1");
  await once(server, "listening");
  return { port: (server.address() as AddressInfo).port, [Symbol.dispose]: () => void server.close() };
}

/** The command line that runs another one in a new terminal and passes its output on. */
function atTerminal(line: readonly string[], { columns, rows }: { columns: number; rows: number }): string[] {
  const command = line.map((word) => `'${word.replaceAll("'", "'\\''")}'`).join(" ");
  return ["script", "-qefc", `stty cols ${columns} rows ${rows}; exec ${command}`, "/dev/null"];
}

/** Waits until none of the processes is left. */
export async function gone(family: Process[]): Promise<void> {
  const left = () => processes().then((all) => family.filter(({ pid }) => all.some((other) => other.pid === pid)));
  await until(`${JSON.stringify(family)} to be gone`, async () => (await left()).length === 0);
}

/** A process and all its descendants. */
export async function descendants(root: number): Promise<Process[]> {
  const all = await processes();
  const family = all.filter(({ pid }) => pid === root);
  for (const member of family) family.push(...all.filter(({ parent }) => parent === member.pid));
  return family;
}

async function processes(): Promise<Process[]> {
  const { stdout } = await execa("ps", ["-A", "-o", "pid=,ppid=,stat=,args="]);
  return stdout.split("\n").flatMap((line) => {
    const [, pid, parent, state, command] = /^ *(\d+) +(\d+) +(\S+) +(.*)$/.exec(line) ?? [];
    // A zombie has ended, and only waits for its parent to read its exit status.
    return command === undefined || state?.startsWith("Z")
      ? []
      : [{ pid: Number(pid), parent: Number(parent), command }];
  });
}
