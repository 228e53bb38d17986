/** A separate Postgres for a test, if it is installed on the machine. */
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { chown, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "../../testing/stack/port.ts";
import { until } from "../../testing/stack/program.ts";

/** Folders that may have its programs: those of the PATH, and Debian's. */
const folders = [...(process.env.PATH ?? "").split(":"), ...[17, 16, 15].map((n) => `/usr/lib/postgresql/${n}/bin`)];
const bin = folders.find((folder) => existsSync(join(folder, "initdb")) && existsSync(join(folder, "postgres")));

/** The account under which to run Postgres, which refuses to run as root; undefined if there is none. */
function account(): { uid?: number; gid?: number } | undefined {
  if (process.getuid?.() !== 0) return {};
  try {
    const id = (flag: string) =>
      Number(execFileSync("id", [flag, "postgres"], { stdio: ["ignore", "pipe", "ignore"] }));
    return { uid: id("-u"), gid: id("-g") };
  } catch {
    return undefined;
  }
}

export const hasPostgres = bin !== undefined && account() !== undefined;

export interface Postgres extends AsyncDisposable {
  url: string;
  /** Runs a script with `psql` and returns its output, with columns separated by `|`. @throws {Error} with the error of psql */
  psql(script: string): string;
}

export async function startPostgres(): Promise<Postgres> {
  const as = account() ?? {};
  const data = await mkdtemp(join(tmpdir(), "postgres-"));
  if (as.uid !== undefined) await chown(data, as.uid, as.gid ?? as.uid);
  const program = (name: string) => join(bin ?? "", name);
  execFileSync(program("initdb"), ["-D", data, "-U", "resonate", "--auth=trust", "--no-sync"], {
    ...as,
    cwd: data,
    stdio: "ignore",
  });
  const port = await freePort();
  const settings = [`listen_addresses=127.0.0.1`, `unix_socket_directories=`, "fsync=off"].flatMap((one) => [
    "-c",
    one,
  ]);
  const server = spawn(program("postgres"), ["-D", data, "-p", String(port), ...settings], {
    ...as,
    cwd: data,
    stdio: "ignore",
  });
  const url = `postgres://resonate@127.0.0.1:${port}/postgres`;
  const psql = (input: string) =>
    execFileSync("psql", ["--no-psqlrc", "--quiet", "--tuples-only", "--no-align", "--set=ON_ERROR_STOP=1", url], {
      input,
      encoding: "utf8",
      stdio: ["pipe", "pipe", "pipe"],
    });
  const isUp = () => {
    try {
      return psql("SELECT 1") !== "";
    } catch {
      return false;
    }
  };
  await until("Postgres to answer", () => isUp() || undefined, 30_000);
  return {
    url,
    psql,
    async [Symbol.asyncDispose]() {
      const gone = once(server, "exit");
      server.kill("SIGINT");
      await gone;
      await rm(data, { recursive: true, force: true });
    },
  };
}
