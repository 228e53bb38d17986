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
  /** The name of a Worker whose uploads are refused. */
  refuses?: string;
}

export interface DeployedWorker {
  /** The modules' names and sizes in bytes. */
  modules: Record<string, number>;
  bindings: { name: string; type: string; text?: string; class_name?: string; script_name?: string }[];
  migrations: unknown;
  limits: unknown;
}

export async function startPlatform(): Promise<Platform> {
  const workers = new Map<string, DeployedWorker>();
  const uploads: string[] = [];
  const applications: Platform["applications"][number][] = [];
  const account: Pick<Platform, "hasContainers" | "fault" | "stays" | "refuses"> = { hasContainers: false };
  const server = await serveHttp(async (req, res) => {
    const path = new URL(req.url ?? "/", "http://platform").pathname.replace(/^\/accounts\/[^/]+(\/workers)?/, "");
    const say = (status: number, body: object) => {
      res.writeHead(status, { "content-type": "application/json" });
      res.end(JSON.stringify({ errors: [], messages: [], success: status < 400, result: null, ...body }));
    };
    const ok = (result: unknown) => say(200, { result });
    const none = () => say(404, { errors: [{ code: 10_007, message: "This Worker does not exist on your account." }] });
    const [, name = ""] = /^\/(?:scripts|services|workers)\/([^/]+)/.exec(path) ?? [];
    const worker = workers.get(name);
    switch (`${req.method} ${name ? path.replace(name, "NAME") : path}`) {
      case "GET /scripts/NAME/secrets":
        return worker ? ok(worker.bindings.filter(({ type }) => type === "secret_text")) : none();
      case "GET /scripts/NAME/settings":
        return worker
          ? ok({
              bindings: worker.bindings.map(({ text, ...each }) =>
                each.type === "plain_text" ? { text, ...each } : each,
              ),
            })
          : none();
      case "GET /services/NAME":
        return worker ? ok({ default_environment: { script: { last_deployed_from: "wrangler" } } }) : none();
      case "GET /scripts/NAME/references":
        return ok({ durable_objects: usersOf(name, workers) });
      case "GET /scripts/NAME/deployments":
        return ok({ deployments: [] });
      case "GET /subdomain":
        return ok({ subdomain: "me" });
      case "POST /scripts/NAME/assets-upload-session":
        return ok({ jwt: "done", buckets: [] });
      case "PUT /scripts/NAME": {
        if (name === account.refuses) return say(400, { errors: [{ code: 10_021, message: "it is refused" }] });
        uploads.push(name);
        workers.set(name, await uploaded(req, worker));
        return ok({
          id: name,
          startup_time_ms: 1,
          deployment_id: "0".repeat(32),
          etag: "1",
          available_on_subdomain: true,
        });
      }
      case `GET /scripts/NAME/versions/${VERSION}`:
        return ok({
          id: VERSION,
          resources: { bindings: worker?.bindings.map((each) => ({ ...each, namespace_id: name })) },
        });
      case "GET /workers/NAME":
        return ok({ subdomain: { enabled: true, previews_enabled: true } });
      case "DELETE /services/NAME":
        if (name === account.stays) return say(403, { errors: [{ code: 10_000, message: "it stays" }] });
        workers.delete(name);
        return ok(null);
      case "GET /containers/me":
        if (account.fault !== undefined) return say(account.fault, {});
        return account.hasContainers ? ok(ACCOUNT) : say(403, { errors: [{ code: 1_000, message: "Unauthorized" }] });
      case "GET /containers/applications":
        return ok(applications);
      case "POST /containers/applications": {
        const made = { id: "1", version: 1, ...JSON.parse(await bodyOf(req)) };
        applications.push(made);
        return ok(made);
      }
      case "GET /durable_objects/namespaces":
        return ok([...workers.keys()].map((script) => ({ id: script, script, class: "WorkerContainer" })));
      default:
        if (process.env.PLATFORM_LOG) console.error(req.method, path);
        return ok(path.endsWith("s") ? [] : { enabled: true, previews_enabled: true });
    }
  });
  return Object.assign(account, {
    env: {
      CLOUDFLARE_API_BASE_URL: server.url,
      CLOUDFLARE_API_TOKEN: "token",
      CLOUDFLARE_ACCOUNT_ID: "account",
      WRANGLER_SEND_METRICS: "false",
      WRANGLER_WRITE_LOGS: "false",
      WRANGLER_DOCKER_BIN: "/nowhere/docker",
    },
    workers,
    uploads,
    applications,
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  });
}

/** The Workers that bind objects of this one, in the platform's form. A Worker's bindings to itself are included. */
function usersOf(name: string, workers: Platform["workers"]) {
  return [...workers].flatMap(([service, { bindings }]) =>
    bindings
      .filter(({ type, script_name = service }) => type === "durable_object_namespace" && script_name === name)
      .map(({ class_name }) => ({ service, environment: "production", durable_object_namespace_name: class_name })),
  );
}

/** The version of every deployed Worker. */
const VERSION = "00000000-0000-0000-0000-000000000000";

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

/** The Worker after an upload: it has the upload's bindings, keeps its secrets, and the types in `keep_bindings`. */
async function uploaded(req: IncomingMessage, before: DeployedWorker | undefined): Promise<DeployedWorker> {
  const chunks: Buffer[] = [];
  for await (const chunk of req) chunks.push(chunk);
  const type = { "content-type": req.headers["content-type"] ?? "" };
  const form = await new Response(Buffer.concat(chunks), { headers: type }).formData();
  const { bindings, migrations, limits, keep_bindings = [] } = JSON.parse(await textOf(form.get("metadata")));
  const modules = [...form].filter(([name]) => name !== "metadata" && !name.endsWith(".map"));
  const kept = before?.bindings.filter(({ type }) => type === "secret_text" || keep_bindings.includes(type)) ?? [];
  return {
    modules: Object.fromEntries(
      modules.map(([name, file]) => [name, typeof file === "string" ? file.length : file.size]),
    ),
    bindings: [
      ...kept.filter(({ name }) => !bindings.some((each: { name: string }) => each.name === name)),
      ...bindings,
    ],
    migrations,
    limits,
  };
}

const textOf = (part: FormDataEntryValue | null) => (typeof part === "string" ? part : (part?.text() ?? "{}"));
