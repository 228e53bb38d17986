/** A project that `new` makes with this checkout's package, installed outside the checkout. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { execa, type Options } from "execa";

export interface Scaffold extends AsyncDisposable {
  readonly root: string;
  /** The environment of a user who does not have this checkout. */
  readonly env: Record<string, string | undefined>;
  /** The commands run so far, written as a reader of the tutorial types them. */
  readonly typed: Set<string>;
  /** Runs a program in the project, and resolves with its output. @throws {Error} with the output, if it fails */
  run(program: string, ...args: string[]): Promise<string>;
}

/** Options that only make an install quicker. */
const QUICK = ["--prefer-offline", "--no-audit", "--no-fund"];

/** Makes a project by `npm run new` and installs it. */
export async function scaffold(name: string): Promise<Scaffold> {
  const parent = await mkdtemp(join(tmpdir(), "scaffold-"));
  const root = join(parent, name);
  // The cache of compiled code only makes the project's commands start quicker.
  const env = { ...outside(), NODE_COMPILE_CACHE: join(parent, "compiled") };
  const typed = new Set<string>();
  const run = async (cwd: string, program: string, args: string[]) => {
    typed.add([program, ...args.filter((arg) => !QUICK.includes(arg))].join(" ").replace(parent, ".."));
    const options = { cwd, env, extendEnv: false, all: true, reject: false, stdin: "ignore" } satisfies Options;
    const { failed, all } = await execa(program, args, options);
    if (failed) throw new Error(`${program} ${args.join(" ")} in ${cwd}:\n${all}`);
    return all;
  };
  const remove = () => rm(parent, { recursive: true, force: true });
  try {
    await run(process.cwd(), "npm", ["run", "new", "--", root]);
    await run(root, "npm", ["install", ...QUICK]);
  } catch (error) {
    await remove();
    throw error;
  }
  return { root, env, typed, run: (program, ...args) => run(root, program, args), [Symbol.asyncDispose]: remove };
}

/** This environment without the variables and paths of npm and this checkout. */
function outside(): Record<string, string | undefined> {
  const entries = Object.entries(process.env).filter(
    ([name]) => !/^(npm_|NODE_|RESONATE_|VITEST|INIT_CWD)/i.test(name),
  );
  const path = (process.env.PATH ?? "").split(delimiter).filter((folder) => !folder.includes("node_modules"));
  // Other tests run on this machine at the same time.
  return { ...Object.fromEntries(entries), PATH: path.join(delimiter), VITEST_MAX_WORKERS: "1" };
}
