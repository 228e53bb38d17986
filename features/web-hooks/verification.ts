import { jsonOf } from "../../core/resonate/index.ts";
import { type Failure, type Hook, post, readDocument } from "../../functions/http/signed-post.ts";

/** A receiver that is about to be subscribed. */
interface Receiver {
  /** Of the subscription. */
  id: string;
  url: string;
  secret: string;
}

/** Asks a receiver whether it wants deliveries. Returns why not; undefined if it does. */
export async function verify({ id, url, secret }: Receiver, fetcher: typeof fetch): Promise<Failure | undefined> {
  const challenge = crypto.randomUUID();
  const body = JSON.stringify({ type: "verification", challenge });
  const hook: Hook = { url, secrets: [secret], id: `msg_verification_${challenge}`, subscription: id, body };
  const outcome = await post(fetcher, hook, true);
  if (outcome.ok && (jsonOf(outcome.text) as { challenge?: unknown } | null)?.challenge === challenge) return undefined;
  if (outcome.ok || outcome.status !== undefined) {
    const document = await readDocument(fetcher, new URL("/.well-known/mcp-webhook-receiver.json", url));
    const { receivers } = (document ?? {}) as { receivers?: unknown };
    const { pathname } = new URL(url);
    const isListed = (path: unknown) => typeof path === "string" && path.startsWith("/") && isBelow(pathname, path);
    if (Array.isArray(receivers) && receivers.some(isListed)) return undefined;
  }
  return outcome.ok ? "challenge_failed" : outcome.reason;
}

const isBelow = (path: string, folder: string): boolean =>
  path === folder || path.startsWith(folder.endsWith("/") ? folder : `${folder}/`);
