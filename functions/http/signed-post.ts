/** Sends web hooks, signed according to Standard Webhooks. */
import { base64ToBytes, bytesToBase64 } from "../../core/resonate/index.ts";

/** How long a receiver may take to answer. */
const RECEIVER_TIMEOUT_MS = 5_000;

/** About how much of an answer is read at most. */
const MAX_ANSWER_BYTES = 4_096;

/** Why a delivery failed. Clients learn nothing else of a receiver's answer. */
export type Failure = "connection_refused" | "timeout" | "tls_error" | "http_4xx" | "http_5xx" | "challenge_failed";

export type Outcome = { ok: true; text: string } | { ok: false; reason: Failure; status: number | undefined };

export interface Hook {
  url: string;
  /** `whsec_…`: the current secret, and for a while the previous one. */
  secrets: readonly string[];
  /** The id of the message, the same in all attempts. */
  id: string;
  subscription: string;
  body: string;
}

/** Posts a hook. `reads`: also reads the beginning of the answer. */
export async function post(fetcher: typeof fetch, hook: Hook, reads = false): Promise<Outcome> {
  const signal = AbortSignal.timeout(RECEIVER_TIMEOUT_MS);
  try {
    const at = String(Math.floor(Date.now() / 1_000));
    const signatures = await Promise.all(
      hook.secrets.map((secret) => signature(secret, `${hook.id}.${at}.${hook.body}`)),
    );
    const response = await fetcher(hook.url, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        "user-agent": "durable-mcp-edge",
        "webhook-id": hook.id,
        "webhook-timestamp": at,
        "webhook-signature": signatures.join(" "),
        "x-mcp-subscription-id": hook.subscription,
      },
      body: hook.body,
      redirect: "manual",
      signal,
    });
    return await outcomeOf(response, reads, signal);
  } catch (error) {
    return failed(error, signal);
  }
}

/** Reads a small public document; undefined without one. */
export async function readDocument(fetcher: typeof fetch, url: URL): Promise<unknown> {
  const signal = AbortSignal.timeout(RECEIVER_TIMEOUT_MS);
  try {
    const outcome = await outcomeOf(await fetcher(url, { redirect: "manual", signal }), true, signal);
    return outcome.ok ? JSON.parse(outcome.text) : undefined;
  } catch {
    return undefined;
  }
}

async function outcomeOf(response: Response, reads: boolean, signal: AbortSignal): Promise<Outcome> {
  const { status, ok, body } = response;
  if (!ok || !reads) {
    void body?.cancel().catch(() => {});
    // A redirect is not followed: it could lead anywhere.
    return ok ? { ok, text: "" } : { ok, reason: status >= 500 ? "http_5xx" : "http_4xx", status };
  }
  const reader = body?.getReader();
  const stop = () => void reader?.cancel().catch(() => {});
  signal.addEventListener("abort", stop, { once: true });
  const decoder = new TextDecoder();
  let text = "";
  for (let size = 0; reader && size <= MAX_ANSWER_BYTES;) {
    const { done, value } = await reader.read();
    if (done) break;
    size += value.byteLength;
    text += decoder.decode(value, { stream: true });
  }
  stop();
  signal.throwIfAborted();
  return { ok, text };
}

function failed(error: unknown, signal: AbortSignal): Outcome {
  const isTls = /tls|ssl|certificate/i.test(String((error as Error).message));
  const reason = signal.aborted ? "timeout" : isTls ? "tls_error" : "connection_refused";
  return { ok: false, reason, status: undefined };
}

/** Whether a text is a secret in the form of Standard Webhooks, of 24 to 64 bytes. */
export function isSecret(text: string): boolean {
  const [, encoded] = /^whsec_([A-Za-z0-9+/]+={0,2})$/.exec(text) ?? [];
  try {
    const { length } = base64ToBytes(encoded ?? "");
    return length >= 24 && length <= 64;
  } catch {
    return false;
  }
}

async function signature(secret: string, content: string): Promise<string> {
  const bytes = base64ToBytes(secret.slice("whsec_".length));
  const key = await crypto.subtle.importKey("raw", bytes, { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  const signed = await crypto.subtle.sign("HMAC", key, new TextEncoder().encode(content));
  return `v1,${bytesToBase64(new Uint8Array(signed))}`;
}
