import * as z from "zod";
import { DAYS, DEFAULT_DAYS } from "../../core/jobs/retention.ts";
import { NAMESPACE } from "../../core/store/ids.ts";
import { type ObjectAddress, placed, type ResonateNamespace } from "../../core/store/object-address.ts";
import { KEYS } from "../../core/store/sealing.ts";
import { AuthConfig, TrustedUrl } from "../auth/auth-config.ts";
import type { CallerNamespace } from "../caller/callers.ts";
import { LogLevel } from "../http/log.ts";
import type { ListenerNamespace } from "../listener/feed.ts";
import type { PageFiles } from "../pages/files.ts";

/** Comma-separated. */
const list = z.string().transform((text) =>
  text
    .split(",")
    .map((item) => item.trim())
    .filter((item) => item !== ""),
);

/** The edge's bindings, as wrangler vars and secrets. */
const Env = z.object({
  /** Base URL of the Resonate server; without one it is the object at `RESONATE`. */
  RESONATE_URL: z.url({ protocol: /^https?$/ }),
  /** `1`: the account's own Resonate server answers workers elsewhere, under `/resonate`. */
  RESONATE_PUBLIC: z.string().exactOptional(),
  /** The account's own Resonate server. */
  RESONATE: z.custom<ResonateNamespace>((value) => typeof value === "object").optional(),
  /** Bearer token for the Resonate server, when it requires one. */
  RESONATE_TOKEN: z.string().optional(),
  /** What arguments and results are encrypted with before the Resonate server gets them: the first; all decrypt. */
  ENCRYPTION_KEYS: z.string().regex(KEYS, "must be keys of 32 bytes in base64, separated by commas").optional(),
  /** The worker group that executes the jobs. Never `default`: sleeping promises of every SDK carry that target. */
  RESONATE_GROUP: z
    .string()
    .regex(/^[\w.-]+$/)
    .refine((group) => group !== "default", "must not be `default`")
    .default("workers"),
  /** Put before every promise id, so that several deployments can share one server. */
  RESONATE_NAMESPACE: z.string().regex(NAMESPACE).default(""),
  /** Seals task ids; at least 32 characters, kept for as long as tasks live. Unset, the server offers no tasks. */
  TASK_KEY: z.string().min(32).optional(),
  /** Host names a request may be addressed to and come from; unset means any. Set on localhost. */
  ALLOWED_HOSTS: list.optional(),
  /** The URL at which clients reach the deployment, without a path: what tokens are for is derived from it. */
  PUBLIC_URL: TrustedUrl.refine((url) => URL.parse(url)?.pathname === "/", "set it to a URL without a path").optional(),
  /** Callers who are let in no more: names of static tokens, subjects of OAuth tokens, or as the log names them. */
  BLOCKED_CALLERS: list.optional(),
  /** Origins whose pages may call the server from a browser, `*` for all; unset means none. */
  CORS_ORIGINS: list.optional(),
  /**
   * What a caller may ask for in a minute, a request counting for each job that it touches; 0 for any number. Where
   * `RATE_LIMITER` is bound, that decides.
   */
  RATE_LIMIT: z.coerce.number().int().min(0).exactOptional(),
  /** Cloudflare's rate-limiting binding. */
  RATE_LIMITER: z.custom<RateLimiterBinding>((value) => typeof value === "object").optional(),
  /** The Durable Objects that tell of settlements; without them waits look with pauses. */
  LISTENER: z.custom<ListenerNamespace>((value) => typeof value === "object").optional(),
  /** The Durable Objects that hold callers' quotas and lists of jobs; without them no start is served unless `MAX_JOBS` is 0. */
  CALLER: z.custom<CallerNamespace>((value) => typeof value === "object").optional(),
  /** Jobs of each length (up to an hour, a day, 30 days, a year) a caller may start in that time; 0 for any number. */
  MAX_JOBS: z.coerce.number().int().min(0).exactOptional(),
  /**
   * For how many seconds a call waits for its job where the caller asked for no progress, before it is answered with the
   * job's name. Clients give up after 5 seconds and more, and none says after how many.
   */
  WAIT_SECONDS: z.coerce.number().min(1).max(45).default(4),
  /** `off` takes the arguments away by which a model says that the user agreed to something. */
  CONFIRM_ARGUMENTS: z.enum(["on", "off"]).default("on"),
  /** For how many days jobs that have ended are kept, or `forever`, where that is known. */
  RETENTION_DAYS: z.string().regex(DAYS, "must be a number of days above 0, or `forever`").exactOptional(),
  /** Streams a caller may have open at once, of one isolate's; 0 for any number. */
  MAX_STREAMS: z.coerce.number().int().min(0).exactOptional(),
  LOG_LEVEL: LogLevel.default("info"),
  /** The files of the pages. */
  ASSETS: z.custom<PageFiles>((value) => typeof value === "object").optional(),
  /** Seals links to jobs and sessions of browsers; at least 32 characters. Unset, where callers sign in, there are none. */
  VIEW_KEY: z.string().min(32).optional(),
  /** `off`: tools return no links to jobs, and those returned before are void. */
  VIEW_LINKS: z.enum(["on", "off"]).default("on"),
});

export interface RateLimiterBinding {
  limit(options: { key: string }): Promise<{ success: boolean }>;
}

/** Unless others are set. Where callers are not authenticated all are one, who is not to be kept from working. */
const DEFAULT_LIMITS = { RATE_LIMIT: 600, MAX_JOBS: 1_000, MAX_STREAMS: 32 };
const ONE_CALLERS_LIMITS = { RATE_LIMIT: 6_000, MAX_JOBS: 0, MAX_STREAMS: 2_000 };

/** Bindings that are what they are: objects of the platform's, and where those are. */
type Bound = ObjectAddress & { RESONATE?: ResonateNamespace; LISTENER?: ListenerNamespace; CALLER?: CallerNamespace };

/** The bindings are missing or malformed: nothing can be served. */
export class ConfigError extends Error {
  override name = "ConfigError";
}

export type Config = z.infer<typeof Env> & typeof DEFAULT_LIMITS & { auth: AuthConfig };

const AUDIENCE =
  "set it to this deployment's URL (https://...), which tokens are for; or set OAUTH_AUDIENCE or ALLOWED_HOSTS";

/**
 * Reads the bindings; an empty one counts as not set.
 *
 * @throws {ConfigError} naming each variable that is missing or malformed, but not its value
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
  if (given.RESONATE) given.RESONATE = placed(given.RESONATE, given);
  if (given.LISTENER) given.LISTENER = placed(given.LISTENER, given);
  if (given.CALLER) given.CALLER = placed(given.CALLER, given);
  const [general, auth] = [Env.safeParse(given), AuthConfig.safeParse(given)];
  const issues = [auth, general].flatMap(({ error }) => error?.issues ?? []);
  const problems = issues.map(({ path, message }) => `${path.join(".")}: ${message}`);
  if (general.success && auth.success) {
    const { PUBLIC_URL, ALLOWED_HOSTS } = general.data;
    const limits = auth.data.AUTH_MODE === "none" ? ONE_CALLERS_LIMITS : DEFAULT_LIMITS;
    const isPlaced = auth.data.AUTH_MODE !== "oauth" || (auth.data.OAUTH_AUDIENCE ?? PUBLIC_URL ?? ALLOWED_HOSTS);
    if (isPlaced) return { ...limits, ...general.data, auth: auth.data };
    // Never the name that a request gives: whoever sends it chooses it.
    problems.push(`PUBLIC_URL: ${AUDIENCE}`);
  }
  throw new ConfigError(`This deployment is misconfigured. ${problems.join("; ")}.`);
}
