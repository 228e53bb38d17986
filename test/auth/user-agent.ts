import { REDIRECT_URI } from "./authorization-server.ts";

/** A browser that keeps cookies, follows redirects and fills in the login and consent forms of a test's server. */
export class UserAgent {
  readonly #cookies = new Map<string, string>();
  readonly #login: string;
  readonly #redirect: string;

  /** @param redirect the address to which authorization codes are sent */
  constructor(login: string, redirect = REDIRECT_URI) {
    this.#login = login;
    this.#redirect = redirect;
  }

  /** Opens an authorization request, logs in and agrees. Returns the address that leads back to the client. */
  async authorize(authorizationUrl: URL): Promise<URL> {
    let url = authorizationUrl;
    let form: URLSearchParams | undefined;
    for (let steps = 0; steps < 20; steps++) {
      const response = await this.#fetch(url, form);
      form = undefined;
      const location = response.headers.get("location");
      if (location !== null) {
        url = new URL(location, url);
        if (url.href.startsWith(this.#redirect)) return url;
        continue;
      }
      const page = await response.text();
      const [, action] = /<form[^>]* action="([^"]+)" method="post">/.exec(page) ?? [];
      const [, prompt] = /name="prompt" value="(\w+)"/.exec(page) ?? [];
      if (!action || !prompt) throw new Error(`no form at ${url}: ${response.status} ${page.slice(0, 500)}`);
      url = new URL(action, url);
      form = new URLSearchParams(prompt === "login" ? { prompt, login: this.#login, password: "any" } : { prompt });
    }
    throw new Error("the authorization request did not end after 20 steps");
  }

  async #fetch(url: URL, form: URLSearchParams | undefined): Promise<Response> {
    const cookie = [...this.#cookies].map(([name, value]) => `${name}=${value}`).join("; ");
    const post = form && { method: "POST", body: form };
    const response = await fetch(url, { redirect: "manual", headers: { cookie }, ...post });
    for (const set of response.headers.getSetCookie()) {
      const [, name = "", value = ""] = /^([^=]+)=([^;]*)/.exec(set) ?? [];
      if (value === "") this.#cookies.delete(name);
      else this.#cookies.set(name, value);
    }
    return response;
  }
}
