import * as z from "zod";
import { DAYS, DEFAULT_DAYS } from "../core/jobs/retention.ts";
import { NAMESPACE } from "../core/resonate/ids.ts";
import { located, type ObjectAddress, type ResonateNamespace } from "../core/resonate/object-address.ts";
import { KEYS } from "../core/resonate/sealing.ts";
import { hasOperators } from "../features/operators/worker-report.ts";
import { AuthConfig, TrustedUrl } from "./auth/auth-config.ts";
import type { Assets } from "./http/assets.ts";
import { LogLevel } from "./http/log.ts";
import type { RateLimiterBinding } from "./http/rate-limit.ts";

/** Comma-separated. */
const list = z.string().transform((text) =>
  text
    .split(",")
    .map((item) => item.trim())
    .filter((item) => item !== ""),
);

const binding = <T>() => z.custom<T>((value) => typeof value === "object").optional();

/** The edge's bindings, as wrangler vars and secrets. */
const Env = z.object({
  /** Base URL of the Resonate server; when not set, the object at `RESONATE` is the server. */
  RESONATE_URL: z.url({ protocol: /^https?$/ }),
  /** `1`: the account's own Resonate server answers workers elsewhere, at `/resonate`. */
  RESONATE_PUBLIC: z.string().exactOptional(),
  /** The account's own Resonate server. */
  RESONATE: binding<ResonateNamespace>(),
  /** Bearer token for the Resonate server, when it requires one. */
  RESONATE_TOKEN: z.string().optional(),
  /** Keys for the arguments and results in the Resonate server: the first one encrypts, all decrypt. */
  ENCRYPTION_KEYS: z.string().regex(KEYS, "must be keys of 32 bytes in base64, separated by commas").optional(),
  /** The worker group that executes the jobs. Never `default`: sleeping promises of every SDK carry that target. */
  RESONATE_GROUP: z
    .string()
    .regex(/^[\w.-]+$/)
    .refine((group) => group !== "default", "must not be `default`")
    .default("workers"),
  /** Put before every promise id, so that several deployments can share one server. */
  RESONATE_NAMESPACE: z.string().regex(NAMESPACE).default(""),
  /** Seals task ids; at least 32 characters, unchanged for as long as tasks live. Without it the server offers no tasks. */
  TASK_KEY: z.string().min(32).optional(),
  /** Host names that requests may be addressed to and come from; any when not set. Set on localhost. */
  ALLOWED_HOSTS: list.optional(),
  /** `local`: anybody at this machine operates the deployment. */
  OPERATE: z.string().exactOptional(),
  /** Operators, as a JSON list of `{"name", "sha256"}`, and the scope of OAuth tokens whose callers are operators. */
  OPERATOR_TOKENS: z.string().exactOptional(),
  OAUTH_OPERATE_SCOPE: z.string().exactOptional(),
  /** Workers elsewhere, as a JSON list of `{"sha256"}`. */
  RESONATE_TOKENS: z.string().exactOptional(),
  /** The URL at which clients reach the deployment, without a path. The audience of tokens is derived from it. */
  PUBLIC_URL: TrustedUrl.refine((url) => URL.parse(url)?.pathname === "/", "set it to a URL without a path").optional(),
  /** Callers who are refused: names of static tokens, subjects of OAuth tokens, or labels as the log has them. */
  BLOCKED_CALLERS: list.optional(),
  /** Origins whose pages may call the server from a browser, `*` for all; none when not set. */
  CORS_ORIGINS: list.optional(),
  /**
   * The jobs that a caller's requests may touch in a minute; 0 for any number. Where `RATE_LIMITER` is bound, that decides
   * instead.
   */
  RATE_LIMIT: z.coerce.number().int().min(0).exactOptional(),
  RATE_LIMITER: binding<RateLimiterBinding>(),
  /** The Durable Objects that report settlements; without them waits poll. */
  LISTENER: binding<ObjectNamespace>(),
  /** The Durable Objects that hold callers' quotas and lists of jobs; without them no start is served unless `MAX_JOBS` is 0. */
  CALLER: binding<ObjectNamespace>(),
  /** The jobs of each length (up to an hour, a day, 30 days, a year) that a caller may start in that time; 0 for any number. */
  MAX_JOBS: z.coerce.number().int().min(0).exactOptional(),
  /** How many bytes may be stored of a caller's jobs; 0 for any number. */
  MAX_STORED_BYTES: z.coerce.number().int().min(0).exactOptional(),
  /**
   * How many seconds a call waits for its job, when its caller did not ask for progress, before the job's name is the answer.
   * Clients give up after 5 seconds or more, and none states its limit.
   */
  WAIT_SECONDS: z.coerce.number().min(1).max(45).default(4),
  /**
   * Whether an argument counts by which a model states that the user agreed: `on`, from clients that cannot ask their user;
   * `always`, from all clients; `off` removes such arguments.
   */
  CONFIRM_ARGUMENTS: z.enum(["on", "off", "always"]).default("on"),
  /** How many days jobs are kept after their end, or `forever`, where that is known. */
  RETENTION_DAYS: z.string().regex(DAYS, "must be a number of days above 0, or `forever`").exactOptional(),
  /** The streams that a caller may have open at once in one isolate; 0 for any number. */
  MAX_STREAMS: z.coerce.number().int().min(0).exactOptional(),
  /** `sketch`: the Events extension's errors have the codes of the sketch that preceded it, for clients that know no others. */
  EVENT_ERRORS: z.enum(["sep", "sketch"]).default("sep"),
  /** Reaches public addresses alone, for web hooks: on one machine a network of workerd; an account does not need it. */
  CALLBACKS: binding<{ fetch: typeof fetch }>(),
  /** `1`, for development: web hooks may be sent to this machine, without encryption too. */
  ALLOW_LOOPBACK_CALLBACKS: z.string().exactOptional(),
  LOG_LEVEL: LogLevel.default("info"),
  /** Where spans of MCP requests go, by OTLP over HTTP. */
  OTEL_EXPORTER_OTLP_ENDPOINT: z.string().optional(),
  /** The files of the pages. */
  ASSETS: binding<Assets>(),
  /** Seals links to jobs and sessions of browsers; at least 32 characters. Where callers sign in, there are neither without it. */
  VIEW_KEY: z.string().min(32).optional(),
  /** `off`: tools return no links to jobs, and earlier links are void. */
  VIEW_LINKS: z.enum(["on", "off"]).default("on"),
});

/** A binding of Durable Objects. Only its location matters here. */
type ObjectNamespace = Pick<ResonateNamespace, "idFromName"> & { get(id: object, options?: object): unknown };

/** The default limits. Without authentication all callers count as one, whom low limits would keep from working. */
const DEFAULT_LIMITS = { RATE_LIMIT: 600, MAX_JOBS: 1_000, MAX_STREAMS: 32, MAX_STORED_BYTES: 500_000_000 };
const ONE_CALLERS_LIMITS = { RATE_LIMIT: 6_000, MAX_JOBS: 0, MAX_STREAMS: 2_000, MAX_STORED_BYTES: 0 };

/** The bindings of Durable Objects, and their location. */
type Bound = ObjectAddress & { RESONATE?: ResonateNamespace; LISTENER?: ObjectNamespace; CALLER?: ObjectNamespace };

/** Bindings are missing or malformed, so nothing can be served. */
export class ConfigError extends Error {
  override name = "ConfigError";
}

export type Config = z.infer<typeof Env> &
  typeof DEFAULT_LIMITS & {
    auth: AuthConfig;
    /** Whether there is an operator: see `features/operators/rights.ts`. */
    isOperated: boolean;
  };

const AUDIENCE =
  "set it to this deployment's URL (https://...), which tokens are for; or set OAUTH_AUDIENCE or ALLOWED_HOSTS";

/**
 * Reads the bindings. An empty one counts as not set.
 *
 * @throws {ConfigError} naming each variable that is missing or malformed, without its value
 */
export function readConfig(env: unknown): Config {
  const given: Record<string, unknown> & Bound = Object.fromEntries(
    Object.entries(env as Record<string, unknown>).filter(
      ([, value]) => typeof value !== "string" || value.trim() !== "",
    ),
  );
  if (given.RESONATE_URL !== undefined) delete given.RESONATE;
  else if (given.RESONATE) {
    given.RESONATE_URL = "http://resonate";
    given.RETENTION_DAYS ??= DEFAULT_DAYS;
  }
  if (given.RESONATE) given.RESONATE = located(given.RESONATE, given);
  if (given.LISTENER) given.LISTENER = located(given.LISTENER, given);
  if (given.CALLER) given.CALLER = located(given.CALLER, given);
  const [general, auth] = [Env.safeParse(given), AuthConfig.safeParse(given)];
  const issues = [auth, general].flatMap(({ error }) => error?.issues ?? []);
  const problems = issues.map(({ path, message }) => `${path.join(".")}: ${message}`);
  if (general.success && auth.success) {
    const { PUBLIC_URL, ALLOWED_HOSTS } = general.data;
    if (PUBLIC_URL !== undefined && general.data.ALLOW_LOOPBACK_CALLBACKS === "1")
      problems.push("ALLOW_LOOPBACK_CALLBACKS: it is for development, and not for a deployment with a PUBLIC_URL");
    const limits = auth.data.AUTH_MODE === "none" ? ONE_CALLERS_LIMITS : DEFAULT_LIMITS;
    const hasAudience = auth.data.AUTH_MODE !== "oauth" || (auth.data.OAUTH_AUDIENCE ?? PUBLIC_URL ?? ALLOWED_HOSTS);
    const isOperated = hasOperators(general.data);
    if (hasAudience && problems.length === 0) return { ...limits, ...general.data, auth: auth.data, isOperated };
    // The audience never comes from the host name in a request, which its sender chooses.
    if (!hasAudience) problems.push(`PUBLIC_URL: ${AUDIENCE}`);
  }
  throw new ConfigError(`This deployment is misconfigured. ${problems.join("; ")}.`);
}
