/** The callers whom operators name. */
import { ANYONE, type Caller, callerOf, hashIn } from "../../core/author/index.ts";
import type { RefusedRequest } from "../../core/jobs/index.ts";
import { callerKey } from "../../core/resonate/index.ts";
import { oauthId } from "../../functions/auth/admission.ts";
import type { AuthConfig } from "../../functions/auth/auth-config.ts";
import type { OperateTables } from "./tables.ts";

/** How many callers who have started jobs are compared with a name that nobody has, and how many a refusal names. */
const MAX_COMPARED = 1_000;
const MAX_ALIKE = 5;

/** How many first letters make two names alike. */
const ALIKE_LETTERS = 4;

type NamedCaller = Pick<Caller, "key" | "label">;

export class NamedCallers {
  readonly #auth: AuthConfig;
  readonly #tables: OperateTables;
  /** The names of static tokens by their callers' keys. */
  #tokens: Promise<ReadonlyMap<string, string>> | undefined;

  constructor(auth: AuthConfig, tables: OperateTables) {
    this.#auth = auth;
    this.#tables = tables;
  }

  /** The name of a caller in the log: that of its static token, or the hash in its key. */
  async labelOf(key: string): Promise<string> {
    const tokens = this.#auth.AUTH_MODE === "bearer" ? this.#auth.BEARER_TOKENS : [];
    this.#tokens ??= Promise.all(tokens.map(async ({ name }) => [(await callerOf(name)).key, name] as const)).then(
      (labels) => new Map(labels),
    );
    return key === "" ? ANYONE.label : ((await this.#tokens).get(key) ?? key.slice(1, -1));
  }

  /**
   * The caller that an operator names: by its name in the log, its key, the name of its static token, or the subject of its OAuth
   * tokens. A name that nobody has is refused, with the callers whose names are like it.
   */
  async find(name: string): Promise<NamedCaller | RefusedRequest> {
    if (this.#auth.AUTH_MODE === "none") return name === ANYONE.label ? ANYONE : refusal(name, [ANYONE.label]);
    for (const key of await this.#keysOf(name)) {
      if (await this.#isKnown(key)) return { key, label: await this.labelOf(key) };
    }
    const alike = await this.#alike(name);
    const hash = hashIn(name);
    // The log also names OAuth callers that have started no job.
    if (hash !== undefined && alike.length === 0 && this.#auth.AUTH_MODE === "oauth")
      return { key: callerKey(hash), label: hash };
    return refusal(name, alike);
  }

  /** The keys of the callers that may have a name. */
  async #keysOf(name: string): Promise<string[]> {
    const hash = hashIn(name);
    const ids = this.#auth.AUTH_MODE === "oauth" ? [oauthId(this.#auth.OAUTH_ISSUER, name), name] : [name];
    const callers = await Promise.all(ids.map((id) => callerOf(id)));
    return [...callers.map(({ key }) => key), ...(hash === undefined ? [] : [callerKey(hash)])];
  }

  /** Whether a caller has a static token, or has started jobs. */
  async #isKnown(key: string): Promise<boolean> {
    await this.labelOf(key);
    const found = "SELECT 1 FROM usage WHERE key = ? UNION ALL SELECT 1 FROM failures WHERE caller = ? LIMIT 1";
    return (await this.#tokens)?.has(key) === true || this.#tables.all(found, key, key).length > 0;
  }

  async #alike(name: string): Promise<string[]> {
    const wanted = lettersOf(hashIn(name) ?? name);
    const keys = this.#tables.all<{ key: string }>("SELECT key FROM usage ORDER BY day DESC LIMIT ?", MAX_COMPARED);
    const used = await Promise.all(keys.map(({ key }) => this.labelOf(key)));
    const labels = [...new Set([...((await this.#tokens)?.values() ?? []), ...used])];
    const first = wanted.slice(0, ALIKE_LETTERS);
    const alike = labels.filter((label) => first !== "" && lettersOf(label).startsWith(first));
    return alike.sort((a, b) => Number(lettersOf(b) === wanted) - Number(lettersOf(a) === wanted)).slice(0, MAX_ALIKE);
  }
}

const lettersOf = (name: string): string =>
  name
    .normalize("NFKC")
    .toLowerCase()
    .replace(/[^\p{L}\p{N}]/gu, "");

function refusal(name: string, alike: readonly string[]): RefusedRequest {
  const those = alike.length > 0 ? ` Like it: ${alike.join(", ")}.` : "";
  return { refused: `No caller has the name ${JSON.stringify(name)}.${those}` };
}
