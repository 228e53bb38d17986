/** The keys of an authorization server, as it publishes them. */
import { createLocalJWKSet, type JSONWebKeySet } from "jose";
import * as z from "zod";
import { SharedValue } from "../http/shared-value.ts";
import { isLoopback, TrustedUrl } from "./auth-config.ts";

/** How long a request to the authorization server may take, in milliseconds. */
const TIMEOUT = 5_000;

/** How long keys are good, and a failure to get them is not tried again, in milliseconds. */
const FRESH = 10 * 60_000;
const FAILED = 5_000;

/** How long after they were fetched the keys are not fetched again, whatever key a token names, in milliseconds. */
const COOLDOWN = 5_000;

/** Whether a token is genuine cannot be told at present. */
export class KeysUnavailable extends Error {
  override name = "KeysUnavailable";
}

export interface Keys {
  set: JSONWebKeySet;
  /** When they were fetched, in milliseconds since the epoch. */
  at: number;
}

/**
 * However many requests with whatever tokens come in, an isolate asks the authorization server for its keys once in a
 * while: one request at a time does, and a failure is not tried again for some seconds.
 */
export class PublishedKeys {
  readonly #issuer: URL;
  readonly #keys = new SharedValue<JSONWebKeySet>({ fresh: FRESH, failed: FAILED, turn: TIMEOUT / 2 });
  /** Where the keys are. */
  #url: URL | undefined;

  /** @param url where the keys are; found through the server's metadata when not given */
  constructor(issuer: string, url: string | undefined) {
    this.#issuer = new URL(issuer);
    this.#url = url === undefined ? undefined : new URL(url);
  }

  /** @throws {KeysUnavailable} */
  get(): Promise<Keys> {
    return this.#get(0);
  }

  /** The keys that are published now, or `keys` when those were fetched a moment ago. @throws {KeysUnavailable} */
  async newerThan(keys: Keys): Promise<Keys> {
    return Date.now() - keys.at < COOLDOWN ? keys : this.#get(keys.at);
  }

  async #get(newerThan: number): Promise<Keys> {
    try {
      const { value, at } = await this.#keys.get(() => this.#fetch(), newerThan);
      return { set: value, at };
    } catch (cause) {
      throw new KeysUnavailable("the keys of the authorization server could not be fetched", { cause });
    }
  }

  async #fetch(): Promise<JSONWebKeySet> {
    this.#url ??= await this.#discover();
    // Not by the library's own cache, which shares what it is fetching among requests.
    const keys = (await read(this.#url)) as JSONWebKeySet;
    createLocalJWKSet(keys); // throws for what is none
    return keys;
  }

  /** Where the keys are, by the authorization server's metadata: OpenID Connect's, or else RFC 8414's. */
  async #discover(): Promise<URL> {
    const issuer = this.#issuer;
    const path = issuer.pathname.replace(/\/$/, "");
    const discover = async (pathname: string) => {
      const { issuer: named, jwks_uri } = Metadata.parse(await read(new URL(pathname, issuer)));
      // What another issuer publishes there says nothing of this one's keys.
      if (new URL(named).href !== issuer.href) throw new Error("the metadata is of another issuer");
      return new URL(jwks_uri);
    };
    const url = await discover(`${path}/.well-known/openid-configuration`).catch(() =>
      discover(`/.well-known/oauth-authorization-server${path}`),
    );
    if (isLoopback(url) && !isLoopback(issuer)) throw new Error("the metadata names keys on this machine");
    return url;
  }
}

/** What an authorization server says of itself, as far as it is of use here. */
const Metadata = z.object({ issuer: z.string(), jwks_uri: TrustedUrl });

/** The JSON at a URL; no other is followed to. */
async function read(url: URL): Promise<unknown> {
  const headers = { accept: "application/json, application/jwk-set+json" };
  const response = await fetch(url, { headers, signal: AbortSignal.timeout(TIMEOUT), redirect: "manual" });
  if (response.status !== 200) throw new Error(`HTTP ${response.status}`);
  return response.json();
}
