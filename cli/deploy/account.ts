/** Read-only requests to the Cloudflare API for which wrangler has no command. */
import { wranglerJson } from "./wrangler.ts";

const API_URL = "https://api.cloudflare.com/client/v4";

/** The bindings of a Worker. Variables have a `text`, secrets have none. */
export type Bindings = readonly { readonly name: string; readonly type: string; readonly text?: string }[];

/** The users of a Worker. Each is named by either `service` or `script`. */
interface References {
  readonly services?: { readonly incoming: readonly User[]; readonly pages_function?: boolean };
  readonly durable_objects?: readonly User[];
  readonly dispatch_outbounds?: readonly User[];
}

interface User {
  readonly service?: string;
  readonly script?: string;
}

export class Account {
  readonly #url: string;
  readonly #headers: Record<string, string>;

  private constructor(id: string, headers: Record<string, string>) {
    this.#url = `${process.env.CLOUDFLARE_API_BASE_URL || API_URL}/accounts/${id}`;
    this.#headers = headers;
  }

  /**
   * Opens the account that wrangler deploys to.
   *
   * @throws {Error} without a login, or if the login has several accounts and none is configured
   */
  static async open(configuredId: string | undefined): Promise<Account> {
    const token = process.env.CLOUDFLARE_API_TOKEN;
    const headers = headersOf(token ? { token } : await wranglerJson("auth", "token"));
    if (!headers) throw new Error("Nobody is logged in to Cloudflare: npx wrangler login");
    const id = process.env.CLOUDFLARE_ACCOUNT_ID || configuredId;
    if (id) return new Account(id, headers);
    const accounts = (await wranglerJson<{ accounts?: { id: string; name: string }[] }>("whoami"))?.accounts ?? [];
    const [only] = accounts;
    if (only && accounts.length === 1) return new Account(only.id, headers);
    const list = accounts.map(({ id, name }) => `\n  ${id}  ${name}`).join("");
    throw new Error(`Set CLOUDFLARE_ACCOUNT_ID to the account that it is deployed to.${list}`);
  }

  /**
   * Whether the account may run containers. Wrangler makes the same request before it builds an image.
   *
   * @throws {Error} if the platform does not say, for example because it limits requests
   */
  async hasContainers(): Promise<boolean> {
    const { ok, status, body } = await this.#get("/containers/me");
    if (ok) return true;
    if (status === 403 || status === 404) return false;
    throw new Error(
      `Cloudflare does not say whether the account has Containers: ${status} ${JSON.stringify(body.errors)}`,
    );
  }

  /** The bindings of a Worker; undefined if there is no such Worker. */
  async bindings(worker: string): Promise<Bindings | undefined> {
    const { ok, status, body } = await this.#get(`/workers/scripts/${worker}/settings`);
    if (status === 404) return undefined;
    if (!ok) throw new Error(`Cloudflare does not say what is deployed: ${status} ${JSON.stringify(body.errors)}`);
    return body.result?.bindings ?? [];
  }

  /** The known users of a Worker, which break when it is removed. */
  async users(worker: string): Promise<string[]> {
    const { body } = await this.#get(`/workers/scripts/${worker}/references`);
    const { services, durable_objects = [], dispatch_outbounds = [] }: References = body.result ?? {};
    const users = [...(services?.incoming ?? []), ...durable_objects, ...dispatch_outbounds];
    const names = users.map(({ service, script }) => script ?? service ?? "").filter((name) => name !== worker);
    return [...new Set([...names, ...(services?.pages_function ? ["a Pages project"] : [])])];
  }

  async #get(path: string) {
    const response = await fetch(this.#url + path, { headers: this.#headers, signal: AbortSignal.timeout(20_000) });
    const { ok, status } = response;
    return { ok, status, body: await response.json().catch(() => ({})) };
  }
}

function headersOf(login: { type?: string; token?: string; key?: string; email?: string } | undefined) {
  if (login?.token !== undefined) return { authorization: `Bearer ${login.token}` };
  if (login?.key === undefined || login.email === undefined) return undefined;
  return { "x-auth-key": login.key, "x-auth-email": login.email };
}
