/** Checks the Resonate server directly, with requests that the edge and the worker send. */
import { randomUUID } from "node:crypto";
import { decodeJwt } from "jose";
import {
  checkSupport,
  PROTOCOL_VERSION,
  pagesOf,
  ResonateClient,
  ResonateUnavailable,
  SearchRefused,
  SUPPORTED_RELEASES,
} from "../../core/resonate/index.ts";
import { isLoopback } from "../../functions/auth/auth-config.ts";
import { answerOf, checkClock, type Finding, field, findings, type HttpAnswer } from "./finding.ts";

/** A token that expires within this time causes a warning. */
const EXPIRY_WARNING_MS = 14 * 24 * 60 * 60 * 1_000;
/** How late a timer may fire: a server may have very many timers to fire at once. */
const MAX_TIMER_DELAY_MS = 60_000;

const NEW_TOKENS = "Create new tokens: npm run keys -- --namespace NAME/ --key infra/keys/private.pem --out DIR.";

interface ResonateOptions {
  url: URL;
  token: string | undefined;
  /** Whether the token is the secret of an embedded server, not a JSON Web Token. */
  isSecret?: boolean;
  namespace: string;
  /** How late a timer may fire, in milliseconds. Default: a minute. */
  maxDelay?: number;
}

export async function checkResonate(options: ResonateOptions): Promise<Finding[]> {
  const { url, token, isSecret = false, namespace, maxDelay = MAX_TIMER_DELAY_MS } = options;
  const id = `${namespace}doctor`;
  const open = await get(new ResonateClient({ url: url.href }), id);
  const version = checkVersion(url, open);
  const findings = [version];
  if (version.status === "failed") return findings;
  findings.push(checkClock("Resonate's clock", open));
  findings.push(checkProtection(url, open, token));
  const due = Date.now() + ((open.status !== undefined && open.skew) || 0) - maxDelay;
  const client = new ResonateClient({ url: url.href, token });
  if (token !== undefined) {
    const access = checkToken(await get(client, id));
    findings.push(...(isSecret ? [] : [checkClaims(token, namespace)]), access);
    if (access.status !== "ok") return findings;
  } else if (open.status === 401) return findings;
  const release = await checkRelease(client, namespace);
  return [...findings, ...release, await checkTimers(client, namespace, due), await checkPush(client)];
}

/** Requests a promise that need not exist. The server checks the version first, then the token, then the promise. */
function get(client: ResonateClient, id: string): Promise<HttpAnswer> {
  return answerOf(() => client.post("promise.get", { id }));
}

function checkVersion(url: URL, answer: HttpAnswer): Finding {
  const { ok, failed } = findings("Resonate");
  if (answer.status === undefined) {
    return failed(
      `${url.origin} cannot be reached: ${answer.reason}`,
      "Check RESONATE_URL and that the server runs: docker compose -f infra/compose.yaml ps, and logs resonate.",
    );
  }
  const reason = field(answer.text, "data");
  if (typeof reason === "string" && reason.startsWith("Unsupported protocol version")) {
    return failed(reason, "Run the release that infra/compose.yaml names; other releases speak other protocols.");
  }
  if (field(answer.text, "kind") !== "promise.get") {
    return failed(
      `what answers at ${url.origin}, with ${answer.status}, is no Resonate server that this product knows`,
      "Check RESONATE_URL; releases before 0.9 have another protocol. A proxy before the server must pass on / and /poll.",
    );
  }
  return ok(`answers at ${url.origin} and speaks protocol ${PROTOCOL_VERSION}`);
}

function checkProtection(url: URL, answer: HttpAnswer, token: string | undefined): Finding {
  const { ok, failed } = findings("Resonate's protection");
  if (answer.status === 401) return ok("calls without a token are refused");
  if (isLoopback(url) && token === undefined) return ok("none, on this machine only");
  return failed(
    "calls without a token are answered: everyone who reaches the server can read, start and end every job",
    "Set RESONATE_AUTH__PUBLICKEY of the server to public.pem, as infra/compose.yaml does.",
  );
}

function checkClaims(token: string, namespace: string): Finding {
  const { ok, warning, failed } = findings("Resonate token");
  try {
    const { exp = 0, prefix, role } = decodeJwt(token);
    const expires = new Date(exp * 1_000);
    const day = expires.toISOString().slice(0, 10);
    if (expires.getTime() < Date.now()) return failed(`expired on ${day}`, NEW_TOKENS);
    if (role === "admin" || prefix === "") {
      return warning("opens every namespace of the server", NEW_TOKENS);
    }
    if (typeof prefix !== "string" || !namespace.startsWith(prefix)) {
      return failed(
        `is for the namespace ${prefix}, not ${namespace || "(none)"}`,
        "RESONATE_NAMESPACE must be the token's.",
      );
    }
    if (expires.getTime() < Date.now() + EXPIRY_WARNING_MS) return warning(`expires on ${day}`, NEW_TOKENS);
    return ok(`for ${prefix}, until ${day}`);
  } catch {
    return failed("is not a JSON Web Token", NEW_TOKENS);
  }
}

function checkToken(answer: HttpAnswer): Finding {
  const { ok, failed } = findings("Resonate access");
  if (answer.status === 200 || answer.status === 404) return ok("the token is accepted");
  if (answer.status === 401) {
    return failed("the server refuses the token", `The server's public.pem belongs to another key. ${NEW_TOKENS}`);
  }
  if (answer.status === 403) {
    return failed("the token does not open this namespace", "RESONATE_NAMESPACE must be the token's.");
  }
  return failed(
    answer.status === undefined ? answer.reason : `the server answers ${answer.status}`,
    "Check its log: docker compose -f infra/compose.yaml logs resonate.",
  );
}

/** Checks the server's release. Some releases speak the same protocol but refuse requests that jobs need. */
async function checkRelease(client: ResonateClient, namespace: string): Promise<Finding[]> {
  const problem = await checkSupport(client, namespace);
  if (problem?.reason !== "release") return [];
  const fix = `Run release ${SUPPORTED_RELEASES}; infra/compose.yaml names one.`;
  return [findings("Resonate's release").failed(problem.message, fix)];
}

/**
 * Searches timers that were due before `due` and have not fired. It requests each of them, because a request makes the server
 * fire a timer that it has not armed.
 */
async function checkTimers(client: ResonateClient, namespace: string, due: number): Promise<Finding> {
  const { ok, skipped, warning, failed } = findings("Resonate's timers");
  let count = 0;
  try {
    for await (const page of pagesOf(client, { state: "pending", tags: { "resonate:timer": "true" } })) {
      const overdue = page.filter(({ id, timeoutAt }) => id.startsWith(namespace) && timeoutAt < due);
      for (const { id } of overdue) await get(client, id);
      count += overdue.length;
    }
  } catch (error) {
    if (error instanceof SearchRefused) return skipped("the token may not search");
    return failed(`they cannot be searched: ${(error as Error).message}`, "Check the server's log.");
  }
  if (count === 0) return ok("none is overdue");
  const subject = count === 1 ? "1 was overdue, and fired" : `${count} were overdue, and fired`;
  return warning(
    `${subject} only when this check asked for ${count === 1 ? "it" : "them"}`,
    "The server is overloaded, or another client creates timers that release 0.10 does not fire.",
  );
}

/** Checks that a connection for pushed messages opens. Its headers must arrive at once, through every proxy. */
async function checkPush(client: ResonateClient): Promise<Finding> {
  const { ok, failed } = findings("Resonate's messages");
  const connection = new AbortController();
  const signal = AbortSignal.any([connection.signal, AbortSignal.timeout(5_000)]);
  try {
    await client.connections.open({ group: "doctor", id: randomUUID(), onMessage() {}, signal });
    return ok("a connection for them opens");
  } catch (error) {
    const status = error instanceof ResonateUnavailable ? error.status : undefined;
    if (status !== undefined) {
      return failed(
        `their connection is answered with ${status}${status === 200 ? ", but with no stream" : ""}`,
        status === 503
          ? "The server has as many connections as it accepts: raise RESONATE_TRANSPORTS__HTTP_POLL__MAX_CONNECTIONS."
          : "A proxy before the server must pass on /poll as it is.",
      );
    }
    return failed(
      "their connection does not open: workers get no jobs this way",
      "A proxy before the server holds answers back. Let it stream /poll (nginx: proxy_buffering off).",
    );
  } finally {
    connection.abort();
  }
}
