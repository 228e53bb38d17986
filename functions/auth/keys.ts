/** The published keys of an authorization server. */
import { createLocalJWKSet, type JSONWebKeySet } from "jose";
import * as z from "zod";
import { SharedValue } from "../http/shared-value.ts";
import { isLoopback, TrustedUrl } from "./auth-config.ts";
import { KeysUnavailable } from "./refusal.ts";
import { isSameUrl } from "./same-url.ts";

/** How long a request to the authorization server may take, in milliseconds. */
const REQUEST_TIMEOUT_MS = 5_000;

/** How long keys are good, and how long a failure to get them is not tried again, in milliseconds. */
const CACHE_MS = 10 * 60_000;
const RETRY_AFTER_MS = 5_000;

/** How long fetched keys are not fetched again for tokens that name an unknown key, in milliseconds. */
const REFETCH_AFTER_MS = 5_000;

export interface Keys {
  set: JSONWebKeySet;
  /** When they were fetched, in milliseconds since the epoch. */
  at: number;
}

/**
 * Fetches the keys at a bounded rate, regardless of the requests and tokens that come in: one request of an isolate at a time,
 * and not again for some seconds after a failure.
 */
export class PublishedKeys {
  readonly #issuer: URL;
  readonly #keys = new SharedValue<JSONWebKeySet>({
    freshForMs: CACHE_MS,
    failureForMs: RETRY_AFTER_MS,
    turnForMs: REQUEST_TIMEOUT_MS / 2,
  });
  #url: URL | undefined;

  /** @param url the URL of the keys; found through the server's metadata when not given */
  constructor(issuer: string, url: string | undefined) {
    this.#issuer = new URL(issuer);
    this.#url = url === undefined ? undefined : new URL(url);
  }

  /** The current keys; `keys` themselves when they were fetched a moment ago. @throws {KeysUnavailable} */
  async newerThan(keys: Keys): Promise<Keys> {
    return Date.now() - keys.at < REFETCH_AFTER_MS ? keys : this.get(keys.at);
  }

  /** Keys that were fetched after `newerThan`. @throws {KeysUnavailable} */
  async get(newerThan = 0): Promise<Keys> {
    try {
      const { value, at } = await this.#keys.get(() => this.#fetch(), newerThan);
      return { set: value, at };
    } catch (cause) {
      throw new KeysUnavailable("the keys of the authorization server could not be fetched", { cause });
    }
  }

  async #fetch(): Promise<JSONWebKeySet> {
    this.#url ??= await this.#discover();
    // The library's own cache would share promises among requests.
    const keys = (await readJson(this.#url)) as JSONWebKeySet;
    createLocalJWKSet(keys); // throws if it is not a key set
    return keys;
  }

  /** The URL of the keys, from the first of the metadata of OpenID Connect and RFC 8414 that names the issuer. */
  async #discover(): Promise<URL> {
    const issuer = this.#issuer;
    const path = issuer.pathname.replace(/\/$/, "");
    const discover = async (pathname: string) => {
      const { issuer: issuerInMetadata, jwks_uri } = Metadata.parse(await readJson(new URL(pathname, issuer)));
      // Another issuer's metadata is not evidence of this issuer's keys.
      if (!isSameUrl(issuerInMetadata, issuer.href)) throw new Error("the metadata is of another issuer");
      return new URL(jwks_uri);
    };
    const url = await discover(`${path}/.well-known/openid-configuration`)
      .catch(() => discover(`/.well-known/oauth-authorization-server${path}`))
      .catch(() => discover(`/.well-known/openid-configuration${path}`));
    if (isLoopback(url) && !isLoopback(issuer)) throw new Error("the metadata names keys on this machine");
    return url;
  }
}

/** The metadata of an authorization server, as far as it is used here. */
const Metadata = z.object({ issuer: z.string(), jwks_uri: TrustedUrl });

/** The JSON at a URL, without following redirects. */
async function readJson(url: URL): Promise<unknown> {
  const headers = { accept: "application/json, application/jwk-set+json" };
  const response = await fetch(url, { headers, signal: AbortSignal.timeout(REQUEST_TIMEOUT_MS), redirect: "manual" });
  if (response.status !== 200) throw new Error(`HTTP ${response.status}`);
  return response.json();
}
