/**
 * `npm run containers`: builds the worker's image and runs the machine's part of a deployment (`docs/deploy.md`) on
 * the local Docker, with the standalone Resonate server and Postgres. Jobs arrive through an edge on this machine, and every
 * container is stopped and killed. Compose pulls missing images. Takes three minutes, plus the time to pull.
 *
 * Exits with 0 if all checks pass, with 1 if one fails, and with 2 without Docker.
 */
import { execa } from "execa";

const reason = await whyNoDocker();
if (reason !== undefined) {
  console.error(`Nothing was checked: ${reason}.`);
  process.exit(2);
}
const { checkContainers } = await import("./checks.ts");
const failures = await checkContainers();
console.log(failures === 0 ? "All of it holds." : `${failures} of the checks failed.`);
process.exit(failures === 0 ? 0 : 1);

/** Why containers cannot run here; undefined if they can. */
async function whyNoDocker(): Promise<string | undefined> {
  const server = await execa("docker", ["version", "--format", "{{.Server.Version}}"], { reject: false });
  if (server.code === "ENOENT") return "there is no program `docker` on the PATH";
  if (server.exitCode !== 0) return `no Docker answers: ${server.stderr.split("\n")[0]?.replace(/\.$/, "")}`;
  const compose = await execa("docker", ["compose", "version", "--short"], { reject: false });
  if (compose.exitCode !== 0) return "this Docker has no Compose (`docker compose`)";
  const [major = 0, minor = 0] = compose.stdout.replace(/^v/, "").split(".").map(Number);
  if (major < 2 || (major === 2 && minor < 24)) return `its Compose is ${compose.stdout}, and it takes 2.24 or newer`;
  return undefined;
}
