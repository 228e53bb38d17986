/** `npm run doctor`: checks a deployment from outside and inside, and says for each fault what to do. */
import { parseArgs, styleText } from "node:util";
import { AUTH_MODES, type AuthMode, checkAuth, checkEdge, checkReady } from "./edge.ts";
import { type Finding, skipped } from "./finding.ts";
import { checkMcp } from "./mcp.ts";
import { checkResonate, type ResonateOptions } from "./resonate.ts";
import { checkWorker } from "./worker.ts";

const USAGE = `Usage: npm run doctor -- --url https://HOST [options]

Checks the edge at HOST: that it answers, how it authenticates callers, that it reaches its Resonate server, and, with a
token where one is demanded, that a timer of one second comes through. Given RESONATE_URL it asks that server too.

  --url URL         the edge
  --token TOKEN     to call the edge with; or DOCTOR_TOKEN, which other users of this machine cannot see
  --auth MODE       what the edge should demand: oauth, bearer or none (default: a token, except on this machine)
  --env-file FILE   read RESONATE_URL, RESONATE_TOKEN and RESONATE_NAMESPACE from it (infra/keys/edge.env)
  --worker-url URL  a worker's health address
  --wait SECONDS    how long the timer may take to come through (default 20)
  --json            print the findings as JSON
  --help            show this text

Exit code: 0 when nothing has failed, 1 otherwise, 2 for wrong arguments.
`;

interface Options {
  url: URL;
  token: string | undefined;
  auth: AuthMode | undefined;
  resonate: ResonateOptions | undefined;
  workerUrl: URL | undefined;
  wait: number;
  json: boolean;
}

/** @throws {Error} saying what is wrong with the arguments */
function parseOptions(): Options | undefined {
  const { values } = parseArgs({
    options: {
      url: { type: "string" },
      token: { type: "string" },
      auth: { type: "string" },
      "env-file": { type: "string" },
      "worker-url": { type: "string" },
      wait: { type: "string", default: "20" },
      json: { type: "boolean", default: false },
      help: { type: "boolean", default: false },
    },
  });
  if (values.help) return undefined;
  if (values["env-file"] !== undefined) process.loadEnvFile(values["env-file"]);
  const auth = AUTH_MODES.find((mode) => mode === values.auth);
  if (values.auth !== undefined && !auth) throw new Error(`--auth must be ${AUTH_MODES.join(", ")}.`);
  const wait = Number(values.wait);
  if (!(wait >= 1 && wait <= 300)) throw new Error("--wait must be a number of seconds from 1 to 300.");
  const { RESONATE_URL, RESONATE_TOKEN, RESONATE_NAMESPACE: namespace = "" } = process.env;
  return {
    url: address("--url", values.url),
    token: values.token ?? (process.env.DOCTOR_TOKEN || undefined),
    auth,
    resonate: RESONATE_URL
      ? { url: address("RESONATE_URL", RESONATE_URL), token: RESONATE_TOKEN || undefined, namespace }
      : undefined,
    workerUrl: values["worker-url"] === undefined ? undefined : address("--worker-url", values["worker-url"]),
    wait,
    json: values.json,
  };
}

function address(option: string, text = ""): URL {
  if (URL.canParse(text) && /^https?:$/.test(new URL(text).protocol)) return new URL(text);
  throw new Error(`${option} must be an http:// or https:// address.`);
}

/** Every finding, in the order in which to read them. */
async function* examine({ url, token, auth, resonate, workerUrl, wait }: Options): AsyncGenerator<Finding> {
  const edge = await checkEdge(url);
  yield* edge;
  if (edge.some(({ check, status }) => check === "edge" && status === "failed")) {
    yield skipped("MCP", "the edge does not answer");
  } else {
    yield await checkReady(url);
    yield await checkAuth(url, auth);
    yield* await checkMcp({ url: new URL("/mcp", url), token, wait });
  }

  if (resonate) yield* await checkResonate(resonate);
  else yield skipped("Resonate", "RESONATE_URL is not set: give --env-file");
  if (workerUrl) yield* await checkWorker(workerUrl);
  else yield skipped("worker", "give --worker-url to ask it; the timer needs it in any case");
}

const MARKS = {
  ok: styleText("green", "ok     "),
  warning: styleText("yellow", "warning"),
  failed: styleText("red", "FAILED "),
  skipped: styleText("dim", "skipped"),
};

function print({ check, status, detail, fix }: Finding): void {
  console.log(`${MARKS[status]}  ${check.padEnd(21)} ${detail}`);
  if (fix !== undefined) console.log(`${" ".repeat(31)} ${styleText("bold", "→")} ${fix}`);
}

async function main(options: Options): Promise<void> {
  const findings: Finding[] = [];
  for await (const finding of examine(options)) {
    findings.push(finding);
    if (!options.json) print(finding);
  }
  const count = (status: Finding["status"]) => findings.filter((finding) => finding.status === status).length;
  const healthy = count("failed") === 0;
  if (options.json) console.log(JSON.stringify({ healthy, findings }, undefined, 2));
  else
    console.log(
      `\n${healthy ? "Nothing has failed" : `${count("failed")} failed`}, ${count("warning")} warnings, ${count("skipped")} skipped.`,
    );
  process.exitCode = healthy ? 0 : 1;
}

let options: Options | undefined;
try {
  options = parseOptions();
  if (!options) console.log(USAGE);
} catch (error) {
  console.error(`${(error as Error).message}\n\n${USAGE}`);
  process.exitCode = 2;
}
if (options) await main(options);
