/** `deploy`: the project to Cloudflare, whole: edge, Resonate and what runs the jobs. */
import { createInterface } from "node:readline/promises";
import { setTimeout as delay } from "node:timers/promises";
import { firstCaller } from "../deploy/first-caller.ts";
import { runWrangler, secretNames } from "../deploy/wrangler.ts";
import { run as examine } from "../doctor/main.ts";
import { readConfiguration } from "../launcher/bundle.ts";
import { clientConfiguration } from "../launcher/clients.ts";
import { configurationOf, readProject, typed } from "../launcher/project.ts";
import { TOKEN_NAME } from "./token.ts";

const usage = () => `Usage: ${typed(readProject(), "deploy", "[options]")}

Deploys the project in this folder to Cloudflare: makes what is missing, waits until it answers, examines it, and says what
to give to each client. The first time, at a terminal, it makes a caller and shows his token once.

  --dry-run            say what it would do: bundle it and show what it would be given, and upload nothing
  --caller NAME        make this caller where there is none yet, and show his token, wherever the output goes
  --no-wait            neither wait until it answers nor examine it
  --remove             remove the deployment with everything that it keeps; asks first
  --yes                with --remove, do not ask
  --help               show this text

Other options go to wrangler; the one that matters most:

  --secrets-file FILE  set the secrets in it
`;

/** How long a new deployment may take to answer everywhere, in milliseconds. */
const PATIENCE = 120_000;

export async function run(args: string[]): Promise<void> {
  if (args.includes("--help")) return console.log(usage());
  const project = readProject();
  const config = configurationOf(project);
  if (args.includes("--remove")) return remove(args, project.name);
  const { own, others } = split(args);
  const { vars } = await readConfiguration(config);
  const isDry = args.includes("--dry-run");
  const hasCallers = "AUTH_MODE" in vars || others.some((arg) => /^--(secrets-file|var)\b/.test(arg));
  const needsCaller = !hasCallers && !isDry && !(await secretNames())?.includes("AUTH_MODE");
  // A token is shown to whoever sits there, and to no log of a build unless it is asked for.
  const mayShow = own.caller !== undefined || Boolean(process.stdout.isTTY);
  await using caller = needsCaller && mayShow ? await firstCaller(own.caller) : undefined;
  const secrets = caller ? ["--secrets-file", caller.secretsFile] : [];
  const { exitCode, targets } = await runWrangler(["deploy", ...others, ...secrets]);
  process.exitCode = exitCode;
  if (exitCode !== 0) return;
  if (isDry) {
    if (!hasCallers) console.log("\nA deployment that has no callers yet would get one, whose token is shown once.");
    return;
  }
  const url = targets.find((target) => target.startsWith("https://"))?.replace(/\/+$/, "");
  if (needsCaller && !caller) {
    const command = typed(project, "deploy");
    console.log(`\nNobody may call it yet: run \`${command}\` at a terminal once, which makes a caller.`);
    return;
  }
  if (url === undefined) return console.log("\nIt has no address of its own. Give it a route, then examine it there.");
  if (!own.noWait) await examined(url, caller);
  present(url, project.name, caller);
}

/** This command's own options, and what is wrangler's. @throws {Error} when an option lacks its value */
function split(args: readonly string[]): { own: { caller?: string; noWait: boolean }; others: string[] } {
  const at = args.indexOf("--caller");
  const caller = at < 0 ? undefined : args[at + 1];
  if (at >= 0 && (caller === undefined || !TOKEN_NAME.test(caller))) throw new Error("--caller needs a name.");
  const others = args.filter((arg, i) => (at < 0 || (i !== at && i !== at + 1)) && arg !== "--no-wait");
  return { own: { ...(caller !== undefined && { caller }), noWait: args.includes("--no-wait") }, others };
}

/** Waits for the deployment and examines it. */
async function examined(origin: string, caller: { token: string } | undefined): Promise<void> {
  console.log(`\nWaiting for ${origin} ...`);
  if (!(await isReady(origin))) console.log("It is not ready yet; what is wrong:");
  if (caller) process.env.DOCTOR_TOKEN = caller.token;
  await examine(["--url", origin]);
}

/** Says what to give to clients. */
function present(origin: string, name: string, caller: { name: string; token: string } | undefined): void {
  if (caller) {
    console.log(`\nThe token of ${caller.name}, which is stored nowhere and not shown again:\n\n  ${caller.token}`);
    console.log("\nClients send it as `Authorization: Bearer …`; the proxy takes it from MCP_TOKEN.");
  }
  for (const { client, where, paste } of clientConfiguration(name, `${origin}/mcp`))
    console.log(`\n${client}: ${where}\n${paste}`);
}

async function isReady(origin: string): Promise<boolean> {
  for (const end = Date.now() + PATIENCE; Date.now() < end; await delay(1_000)) {
    const response = await fetch(`${origin}/ready`, { signal: AbortSignal.timeout(10_000) }).catch(() => undefined);
    await response?.body?.cancel();
    if (response?.ok) return true;
  }
  return false;
}

async function remove(args: readonly string[], name: string): Promise<void> {
  const others = args.filter((arg) => arg !== "--remove" && arg !== "--yes");
  if (!args.includes("--yes") && !others.includes("--dry-run")) {
    const asked = `This removes ${name} from Cloudflare, with every job and result that it keeps. Type its name to go on: `;
    const readline = createInterface({ input: process.stdin, output: process.stdout });
    const answer = await readline.question(asked).finally(() => readline.close());
    if (answer.trim() !== name) {
      console.log("Nothing was removed.");
      process.exitCode = 1;
      return;
    }
  }
  const { exitCode } = await runWrangler(["delete", ...others]);
  process.exitCode = exitCode;
}
