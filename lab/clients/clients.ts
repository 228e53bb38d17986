/**
 * `npm run clients [-- NAME…]`: installs each client outside the checkout, from npm and, if there is a Python, from PyPI. Drives
 * it through all steps with tools and tasks, without authentication, with a static token and with an OAuth token, and prints the
 * table of lab/measurements.md. `NAME` selects clients whose names contain it. `--keep DIR` installs into DIR and keeps it.
 */
import { createHash } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { execa } from "execa";
import { markdownTable } from "markdown-table";
import { startAuthorizationServer } from "../../test/auth/authorization-server.ts";
import { startResonate } from "../../test/support/resonate.ts";
import { startStack } from "../../test/support/stack.ts";
import { type Installed, install } from "./install.ts";
import { CLIENTS, type MatrixClient } from "./matrix.ts";

/** How long one client may take for all of its steps, in milliseconds. */
const PATIENCE = 400_000;

/** A way to authenticate. */
interface Way {
  name: string;
  url: string;
  /** Called before each client, because an OAuth token lasts only minutes. */
  token?: () => string | Promise<string>;
}

interface Step {
  step: string;
  why?: string;
}

const { values, positionals } = parseArgs({ allowPositionals: true, options: { keep: { type: "string" } } });
const chosen = CLIENTS.filter(
  ({ name }) => positionals.length === 0 || positionals.some((part) => name.toLowerCase().includes(part.toLowerCase())),
);
const root = values.keep ?? (await mkdtemp(join(tmpdir(), "clients-")));
const log = (text: string) => console.error(text);

await using started = new AsyncDisposableStack();
if (values.keep === undefined) started.defer(() => rm(root, { recursive: true, force: true }));
const ways = await openWays(started);
const rows: string[][] = [];
let failures = 0;
for (const client of chosen) rows.push(await row(client));
console.log(markdownTable([["client", "version", ...ways.map(({ name }) => name), "what does not work"], ...rows]));
process.exitCode = failures > 0 ? 1 : 0;

/** Three servers: without authentication, with static tokens, and with OAuth. */
async function openWays(started: AsyncDisposableStack): Promise<Way[]> {
  const resonate = started.use(await startResonate());
  const open = started.use(await startStack({ resonate }));
  const token = "a-token-of-the-matrix-0123456789abcdef";
  const sha256 = createHash("sha256").update(token).digest("hex");
  // The receivers of web hooks are on this machine.
  const hooks = { ALLOW_LOOPBACK_CALLBACKS: "1" };
  const tokens = { AUTH_MODE: "bearer", BEARER_TOKENS: JSON.stringify([{ name: "matrix", sha256 }]), ...hooks };
  const closed = started.use(await startStack({ resonate, bindings: tokens }));
  const server = started.use(await startAuthorizationServer(["matrix"]));
  const bindings = { AUTH_MODE: "oauth", OAUTH_ISSUER: server.issuer, ALLOWED_HOSTS: "127.0.0.1", ...hooks };
  const oauth = started.use(await startStack({ resonate, bindings }));
  return [
    { name: "no sign-in", url: open.url },
    { name: "token", url: closed.url, token: () => token },
    { name: "OAuth token", url: oauth.url, token: () => server.issue("matrix", oauth.url) },
  ];
}

async function row(client: MatrixClient): Promise<string[]> {
  log(client.name);
  let installed: Installed;
  try {
    installed = await install(client, join(root, client.name.replace(/\W+/g, "-")));
  } catch (error) {
    failures += 1;
    const { stderr, message } = error as Error & { stderr?: string };
    log(stderr ?? message);
    return [client.name, "", ...ways.map(() => "not installed"), (stderr ?? message).split("\n")[0] ?? ""];
  }
  const outcomes: string[] = [];
  const wrong: string[] = [];
  for (const [i, way] of ways.entries()) {
    const steps = await drive(installed, way);
    const failed = steps.filter(({ why }) => why !== undefined);
    outcomes.push(`${steps.length - failed.length} of ${steps.length}`);
    for (const { step, why } of failed) {
      log(`  ${way.name}, ${step}: ${why}`);
      wrong.push(i > 0 ? `${step} (${way.name})` : step);
    }
  }
  failures += wrong.length;
  return [client.name, installed.version, ...outcomes, wrong.join(", ")];
}

async function drive({ command: [program, ...args], cwd }: Installed, way: Way): Promise<Step[]> {
  const env = {
    MCP_URL: way.url,
    RUN: Math.floor(Math.random() * 36 ** 6).toString(36),
    ...(way.token && { MCP_TOKEN: await way.token() }),
  };
  const { stdout, stderr, failed } = await execa(program, args, { cwd, env, timeout: PATIENCE, reject: false });
  const steps = stdout.split("\n").flatMap((line): Step[] => (line.startsWith('{"step"') ? [JSON.parse(line)] : []));
  if (!failed && steps.length > 0) return steps;
  return [
    ...steps,
    { step: "the client itself", why: stderr.trim().split("\n").slice(-3).join(" ") || "it was ended" },
  ];
}
