/** `doctor`: checks a deployment from outside and inside, and names a remedy for each fault. */
import { parseArgs, styleText } from "node:util";
import { addressIn, flag, option, optionOr, readArguments, usageOf, WrongArguments } from "../arguments.ts";
import { DATA, type StackRecord, stackRecordIn } from "../launcher/data-directory.ts";
import { commandLine, readProject } from "../project.ts";
import { printable } from "../terminal/print.ts";
import { checkAlerts } from "./check-alerts.ts";
import { AUTH_MODES, checkAuth, checkEdge, checkReady } from "./check-edge.ts";
import { checkMcp } from "./check-mcp.ts";
import { checkPlan } from "./check-plan.ts";
import { checkResonate } from "./check-resonate.ts";
import { checkWorker } from "./check-worker.ts";
import { checkWrapped } from "./check-wrapped.ts";
import { type Finding, findings } from "./finding.ts";

const OPTIONS = {
  url: option("URL", "the edge"),
  data: optionOr(DATA, "DIR", `without --url: the state directory of the stack on this machine (default ${DATA})`),
  token: option(
    "TOKEN",
    "the token for calls to the edge; or DOCTOR_TOKEN, which other users of this machine cannot see",
  ),
  auth: option(
    "MODE",
    "what the edge should require: oauth, bearer or none (default: a token, except on this machine)",
  ),
  "env-file": option(
    "FILE",
    "read RESONATE_URL, RESONATE_TOKEN and RESONATE_NAMESPACE from this file (infra/keys/edge.env)",
  ),
  "worker-url": option("URL", "a worker's health address"),
  wait: optionOr("20", "SECONDS", "how long the timer may take (default 20)"),
  json: flag("print the findings as JSON"),
};

export const usage = usageOf(
  "[--url https://HOST] [options]",
  `Checks the edge at HOST, or without --url the stack on this machine: whether it answers, how it authenticates callers, whether
it reaches its Resonate server, and, with a token if one is required, whether a timer of one second completes. With
RESONATE_URL it checks that server too, and with OPERATOR_TOKEN what operators are alerted of, and how close the account's own
server is to the limits of its plan.

Exit code: 0 when nothing has failed, 1 otherwise, 2 for wrong arguments.`,
  OPTIONS,
);

/** @throws {WrongArguments} */
function parseOptions(args: string[]) {
  const { values } = parseArgs({ args, options: OPTIONS });
  const { "env-file": envFile, json } = values;
  if (envFile !== undefined) readArguments(() => process.loadEnvFile(envFile));
  const auth = AUTH_MODES.find((mode) => mode === values.auth);
  if (values.auth !== undefined && !auth) throw new WrongArguments(`--auth must be ${AUTH_MODES.join(", ")}.`);
  const wait = Number(values.wait);
  if (!(wait >= 1 && wait <= 300)) throw new WrongArguments("--wait must be a number of seconds from 1 to 300.");
  const stack = values.url === undefined ? localStack(values.data) : undefined;
  const { RESONATE_TOKEN, RESONATE_LOCAL_TOKEN, RESONATE_NAMESPACE: namespace = "" } = process.env;
  const resonateUrl = process.env.RESONATE_URL || stack?.resonateUrl;
  const isEmbedded = stack !== undefined && !process.env.RESONATE_URL;
  const secret = isEmbedded ? RESONATE_LOCAL_TOKEN || stack.resonateToken : undefined;
  const workerUrl = values["worker-url"] ?? stack?.workerUrl;
  const resonate = resonateUrl && {
    url: addressIn("RESONATE_URL", resonateUrl),
    token: secret ?? (RESONATE_TOKEN || undefined),
    isSecret: secret !== undefined,
    namespace,
  };
  return {
    url: addressIn("--url", values.url ?? stack?.url),
    /** Whether this is the launcher's stack on this machine. */
    isLocal: stack !== undefined,
    token: values.token ?? (process.env.DOCTOR_TOKEN || undefined),
    workerUrl: workerUrl === undefined ? undefined : addressIn("--worker-url", workerUrl),
    project: stack?.project ?? process.cwd(),
    auth,
    resonate,
    wait,
    json,
  };
}

/** The addresses of the stack on this machine: the recorded ones, or else the defaults. */
function localStack(data: string): Omit<StackRecord, "ports"> {
  const record = stackRecordIn(data);
  if (record) return { ...record, url: new URL(record.url).origin };
  return { url: local(8787), resonateUrl: local(8001), workerUrl: `${local(8081)}/health` };
}

const local = (port: number) => `http://127.0.0.1:${port}`;

async function* examine(options: ReturnType<typeof parseOptions>): AsyncGenerator<Finding> {
  const { url, isLocal, token, auth, resonate, workerUrl, wait, project } = options;
  const edge = await checkEdge(url);
  if (isLocal && edge.some(({ status }) => status === "failed")) {
    const here = readProject();
    const fix = `Start it: ${commandLine(here, "start")}. To check a deployment: ${commandLine(here, "doctor", "--url URL")}.`;
    yield findings("stack").failed(`no stack answers at ${url.origin}`, fix);
    return;
  }
  yield* edge;
  if (edge.some(({ check, status }) => check === "edge" && status === "failed")) {
    yield findings("MCP").skipped("the edge does not answer");
  } else {
    yield await checkReady(url);
    yield await checkAuth(url, auth);
    yield* await checkMcp({ url: new URL("/mcp", url), token, wait });
  }

  if (resonate) yield* await checkResonate(resonate);
  else yield findings("Resonate").skipped("RESONATE_URL is not set: give --env-file");
  if (workerUrl) yield* await checkWorker(workerUrl);
  else yield findings("worker").skipped("give --worker-url to ask it; the timer needs it in any case");
  const { OPERATOR_TOKEN: operator = "" } = process.env;
  if (isLocal || operator) yield* await checkAlerts(url, operator);
  if (!isLocal && operator) yield* await checkPlan(url, operator);
  yield* checkWrapped(project);
}

const MARKS = {
  ok: styleText("green", "ok     "),
  warning: styleText("yellow", "warning"),
  failed: styleText("red", "FAILED "),
  skipped: styleText("dim", "skipped"),
};

function print({ check, status, detail, fix }: Finding): void {
  console.log(`${MARKS[status]}  ${check.padEnd(21)} ${printable(detail)}`);
  if (fix !== undefined) console.log(`${" ".repeat(31)} ${styleText("bold", "→")} ${printable(fix)}`);
}

export async function run(args: string[]): Promise<void> {
  const options = parseOptions(args);
  const findings: Finding[] = [];
  for await (const finding of examine(options)) {
    findings.push(finding);
    if (!options.json) print(finding);
  }
  const count = (status: Finding["status"]) => findings.filter((finding) => finding.status === status).length;
  const healthy = count("failed") === 0;
  if (options.json) console.log(printable(JSON.stringify({ healthy, findings }, undefined, 2)));
  else
    console.log(
      `\n${healthy ? "Nothing has failed" : `${count("failed")} failed`}, ${count("warning")} warnings, ${count("skipped")} skipped.`,
    );
  // A failure before it, as of a deployment, stays one.
  if (!healthy) process.exitCode = 1;
}
