/**
 * A fake of Cloudflare's API: as much of it as wrangler asks when it deploys one Worker, looks at its secrets and removes it.
 * It remembers what it was sent; nothing runs.
 */
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";

export interface Platform extends AsyncDisposable {
  /** What makes wrangler speak to it. */
  readonly env: Record<string, string>;
  /** The Worker that is deployed; undefined when there is none. */
  readonly worker: DeployedWorker | undefined;
  /** How many times something was deployed. */
  readonly uploads: number;
}

export interface DeployedWorker {
  /** The modules' names and sizes in bytes. */
  modules: Record<string, number>;
  bindings: { name: string; type: string; text?: string; class_name?: string }[];
  migrations: unknown;
}

export async function startPlatform(): Promise<Platform> {
  let worker: DeployedWorker | undefined;
  let uploads = 0;
  const server = createServer(async (req, res) => {
    const path = new URL(req.url ?? "/", "http://platform").pathname.replace(/^\/accounts\/[^/]+\/workers/, "");
    const say = (status: number, body: object) => {
      res.writeHead(status, { "content-type": "application/json" });
      res.end(JSON.stringify({ errors: [], messages: [], success: status < 400, result: null, ...body }));
    };
    const ok = (result: unknown) => say(200, { result });
    const none = () => say(404, { errors: [{ code: 10_007, message: "This Worker does not exist on your account." }] });
    const route = `${req.method} ${path.replace(/durable-mcp-edge/, "NAME")}`;
    switch (route) {
      case "GET /scripts/NAME/secrets":
        return worker ? ok(worker.bindings.filter(({ type }) => type === "secret_text")) : none();
      case "GET /services/NAME":
        return worker ? ok({ default_environment: { script: { last_deployed_from: "wrangler" } } }) : none();
      case "GET /scripts/NAME/deployments":
        return ok({ deployments: [] });
      case "GET /subdomain":
        return ok({ subdomain: "me" });
      case "POST /scripts/NAME/assets-upload-session":
        return ok({ jwt: "done", buckets: [] });
      case "PUT /scripts/NAME": {
        uploads += 1;
        worker = await uploaded(req, worker);
        return ok({ id: "NAME", startup_time_ms: 1, deployment_id: "1", etag: "1", available_on_subdomain: true });
      }
      case "GET /workers/NAME":
        return ok({ subdomain: { enabled: true, previews_enabled: true } });
      case "DELETE /services/NAME":
        worker = undefined;
        return ok(null);
      default:
        return ok(path.endsWith("s") ? [] : { enabled: true, previews_enabled: true });
    }
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    env: {
      CLOUDFLARE_API_BASE_URL: `http://127.0.0.1:${port}`,
      CLOUDFLARE_API_TOKEN: "token",
      CLOUDFLARE_ACCOUNT_ID: "account",
      WRANGLER_SEND_METRICS: "false",
      WRANGLER_WRITE_LOGS: "false",
    },
    get worker() {
      return worker;
    },
    get uploads() {
      return uploads;
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
    },
  };
}

/** What an upload leaves: its own bindings, and the secrets that were there. */
async function uploaded(req: IncomingMessage, before: DeployedWorker | undefined): Promise<DeployedWorker> {
  const chunks: Buffer[] = [];
  for await (const chunk of req) chunks.push(chunk);
  const type = { "content-type": req.headers["content-type"] ?? "" };
  const form = await new Response(Buffer.concat(chunks), { headers: type }).formData();
  const { bindings, migrations } = JSON.parse(await textOf(form.get("metadata")));
  const modules = [...form].filter(([name]) => name !== "metadata" && !name.endsWith(".map"));
  const kept = before?.bindings.filter(({ type }) => type === "secret_text") ?? [];
  return {
    modules: Object.fromEntries(
      modules.map(([name, file]) => [name, typeof file === "string" ? file.length : file.size]),
    ),
    bindings: [
      ...kept.filter(({ name }) => !bindings.some((each: { name: string }) => each.name === name)),
      ...bindings,
    ],
    migrations,
  };
}

const textOf = (part: FormDataEntryValue | null) => (typeof part === "string" ? part : (part?.text() ?? "{}"));
