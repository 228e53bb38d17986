/**
 * A fake of Cloudflare's API, with the part that wrangler and the deploy command use to deploy, inspect and remove Workers.
 * It stores the uploads and runs nothing.
 */
import type { IncomingMessage } from "node:http";
import { serveHttp } from "../../testing/stack/http-server.ts";

export interface Platform extends AsyncDisposable {
  /** Environment variables that direct wrangler to this API and hide Docker from it. */
  readonly env: Record<string, string>;
  /** The deployed Workers, by name. */
  readonly workers: Map<string, DeployedWorker>;
  /** The names of the uploaded Workers, in order; a Worker that was uploaded again is there again. */
  readonly uploads: readonly string[];
  /** The container applications that were created. */
  readonly applications: readonly { name: string; configuration: { image: string } }[];
  /** Whether the account has Containers. */
  hasContainers: boolean;
  /** The status of the answer to whether the account has Containers, while the platform fails. */
  fault?: number;
  /** The name of a Worker that is not removed on request. */
  stays?: string;
  /** Whether an upload of this Worker is refused. */
  refuses?: (worker: string) => boolean;
  /** Stores an upload. The Worker keeps its bindings of the types `kept` that the upload does not replace. */
  upload(name: string, worker: DeployedWorker, kept: readonly string[]): void;
  /** Creates a container application, unless there is one of that name. */
  apply(application: Platform["applications"][number]): void;
}

export interface DeployedWorker {
  /** The modules' names and sizes in bytes. */
  modules: Record<string, number>;
  bindings: { name: string; type: string; text?: string; class_name?: string; script_name?: string }[];
  migrations: unknown;
  limits: unknown;
}

export async function startPlatform(): Promise<Platform> {
  const state: State = { workers: new Map(), uploads: [], applications: [], hasContainers: false };
  const { applications } = state;
  const server = await serveHttp(async (req, res) => {
    const { status, body } = await answerTo(req, state);
    res.writeHead(status, { "content-type": "application/json" });
    res.end(JSON.stringify({ errors: [], messages: [], success: status < 400, result: null, ...body }));
  });
  return Object.assign(state, {
    env: {
      CLOUDFLARE_API_BASE_URL: server.url,
      CLOUDFLARE_API_TOKEN: "token",
      CLOUDFLARE_ACCOUNT_ID: "account",
      WRANGLER_SEND_METRICS: "false",
      WRANGLER_WRITE_LOGS: "false",
      WRANGLER_DOCKER_BIN: "/nowhere/docker",
    },
    upload: (name: string, worker: DeployedWorker, kept: readonly string[]) => store(state, name, worker, kept),
    apply(application: Platform["applications"][number]) {
      if (!applications.some(({ name }) => name === application.name)) applications.push(application);
    },
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  });
}

interface State extends Pick<Platform, "workers" | "hasContainers" | "fault" | "stays" | "refuses"> {
  uploads: string[];
  applications: Platform["applications"][number][];
}

interface Answer {
  status: number;
  body: object;
}

interface Exchange {
  req: IncomingMessage;
  state: State;
  /** The name of the Worker in the path, and the Worker if it is deployed. */
  name: string;
  worker: DeployedWorker | undefined;
}

const ok = (result: unknown): Answer => ({ status: 200, body: { result } });
const refusal = (status: number, code: number, message: string): Answer => ({
  status,
  body: { errors: [{ code, message }] },
});
const NO_WORKER = refusal(404, 10_007, "This Worker does not exist on your account.");

async function answerTo(req: IncomingMessage, state: State): Promise<Answer> {
  const path = new URL(req.url ?? "/", "http://platform").pathname.replace(/^\/accounts\/[^/]+(\/workers)?/, "");
  const [, name = ""] = /^\/(?:scripts|services|workers)\/([^/]+)/.exec(path) ?? [];
  const answer = ANSWERS[`${req.method} ${name ? path.replace(name, "NAME") : path}`];
  if (answer) return answer({ req, state, name, worker: state.workers.get(name) });
  if (process.env.PLATFORM_LOG) console.error(req.method, path);
  return ok(path.endsWith("s") ? [] : { enabled: true, previews_enabled: true });
}

/** The version of every deployed Worker. */
const VERSION = "00000000-0000-0000-0000-000000000000";

/** The answers by method and path, in which NAME is a Worker's name. */
const ANSWERS: Record<string, (exchange: Exchange) => Answer | Promise<Answer>> = {
  "GET /scripts/NAME/secrets": ({ worker }) =>
    worker ? ok(worker.bindings.filter(({ type }) => type === "secret_text")) : NO_WORKER,
  "GET /scripts/NAME/settings": ({ worker }) =>
    worker ? ok({ bindings: worker.bindings.map(withoutSecret) }) : NO_WORKER,
  "GET /services/NAME": ({ worker }) =>
    worker ? ok({ default_environment: { script: { last_deployed_from: "wrangler" } } }) : NO_WORKER,
  "GET /scripts/NAME/references": ({ name, state }) => ok({ durable_objects: usersOf(name, state.workers) }),
  "GET /scripts/NAME/deployments": () => ok({ deployments: [] }),
  "GET /subdomain": () => ok({ subdomain: "me" }),
  "POST /scripts/NAME/assets-upload-session": () => ok({ jwt: "done", buckets: [] }),
  "PUT /scripts/NAME": async ({ req, state, name }) => {
    if (state.refuses?.(name)) return refusal(400, 10_021, "it is refused");
    const { worker, kept } = await uploadIn(req);
    store(state, name, worker, ["secret_text", ...kept]);
    return ok({
      id: name,
      startup_time_ms: 1,
      deployment_id: "0".repeat(32),
      etag: "1",
      available_on_subdomain: true,
    });
  },
  [`GET /scripts/NAME/versions/${VERSION}`]: ({ name, worker }) =>
    ok({ id: VERSION, resources: { bindings: worker?.bindings.map((each) => ({ ...each, namespace_id: name })) } }),
  "GET /workers/NAME": () => ok({ subdomain: { enabled: true, previews_enabled: true } }),
  "DELETE /services/NAME": ({ state, name }) => {
    if (name === state.stays) return refusal(403, 10_000, "it stays");
    state.workers.delete(name);
    return ok(null);
  },
  "GET /containers/me": ({ state }) => {
    if (state.fault !== undefined) return { status: state.fault, body: {} };
    return state.hasContainers ? ok(ACCOUNT) : refusal(403, 1_000, "Unauthorized");
  },
  "GET /containers/applications": ({ state }) => ok(state.applications),
  "POST /containers/applications": async ({ req, state }) => {
    const application = { id: "1", version: 1, ...JSON.parse(await bodyOf(req)) };
    state.applications.push(application);
    return ok(application);
  },
  "GET /durable_objects/namespaces": ({ state }) =>
    ok([...state.workers.keys()].map((script) => ({ id: script, script, class: "WorkerContainer" }))),
};

const withoutSecret = ({ text, ...binding }: DeployedWorker["bindings"][number]) =>
  binding.type === "plain_text" ? { text, ...binding } : binding;

/** The Workers that bind objects of this one, in the platform's form. A Worker's bindings to itself are included. */
function usersOf(name: string, workers: Platform["workers"]) {
  return [...workers].flatMap(([service, { bindings }]) =>
    bindings
      .filter(({ type, script_name = service }) => type === "durable_object_namespace" && script_name === name)
      .map(({ class_name }) => ({ service, environment: "production", durable_object_namespace_name: class_name })),
  );
}

/** The platform's description of an account that has Containers. */
const ACCOUNT = {
  external_account_id: "account",
  limits: { memory_mib_per_deployment: 4_096, vcpu_per_deployment: 4, disk_mb_per_deployment: 4_000 },
  locations: [],
};

async function bodyOf(req: IncomingMessage): Promise<string> {
  let text = "";
  for await (const chunk of req.setEncoding("utf8")) text += chunk;
  return text;
}

/** The Worker of an upload, and the types of bindings that it keeps. */
async function uploadIn(req: IncomingMessage): Promise<{ worker: DeployedWorker; kept: string[] }> {
  const chunks: Buffer[] = [];
  for await (const chunk of req) chunks.push(chunk);
  const type = { "content-type": req.headers["content-type"] ?? "" };
  const form = await new Response(Buffer.concat(chunks), { headers: type }).formData();
  const { bindings, migrations, limits, keep_bindings: kept = [] } = JSON.parse(await textOf(form.get("metadata")));
  const files = [...form].filter(([name]) => name !== "metadata" && !name.endsWith(".map"));
  const sizes = files.map(([name, file]) => [name, typeof file === "string" ? file.length : file.size]);
  return { worker: { modules: Object.fromEntries(sizes), bindings, migrations, limits }, kept };
}

/** Stores a Worker over the one that is deployed, whose bindings of the types `kept` stay unless the new one has them. */
function store({ workers, uploads }: State, name: string, worker: DeployedWorker, kept: readonly string[]): void {
  const before = workers.get(name)?.bindings.filter(({ type }) => kept.includes(type)) ?? [];
  const isNew = ({ name }: { name: string }) => !worker.bindings.some((each) => each.name === name);
  workers.set(name, { ...worker, bindings: [...before.filter(isNew), ...worker.bindings] });
  uploads.push(name);
}

const textOf = (part: FormDataEntryValue | null) => (typeof part === "string" ? part : (part?.text() ?? "{}"));
