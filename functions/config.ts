import * as z from "zod";
import { DEFAULT_DAYS, hasOperators } from "../core/jobs/index.ts";
import {
  KEYS_PATTERN,
  NAMESPACE_PATTERN,
  type ObjectAddress,
  type ResonateNamespace,
  withLocation,
} from "../core/resonate/index.ts";
import { blockedCallerVariables } from "../features/blocked-callers/config.ts";
import { consentVariables } from "../features/consent/config.ts";
import { eventVariables } from "../features/events/config.ts";
import { operatorVariables } from "../features/operators/config.ts";
import { pageVariables } from "../features/pages/config.ts";
import { QUOTAS, quotaVariables } from "../features/quota/config.ts";
import { RATE_LIMITS, rateLimitVariables } from "../features/rate-limit/config.ts";
import { retentionVariables } from "../features/retention/config.ts";
import { sharedResonateVariables } from "../features/shared-resonate/config.ts";
import { STREAM_LIMITS, streamVariables } from "../features/stream-slots/config.ts";
import { taskVariables } from "../features/tasks/config.ts";
import { traceVariables } from "../features/trace/config.ts";
import { webHookVariables } from "../features/web-hooks/config.ts";
import { AuthConfig, TrustedUrl } from "./auth/auth-config.ts";
import { LogLevel } from "./http/log.ts";
import { binding, list } from "./http/variables.ts";

/** The variables of the edge itself. */
const edgeVariables = {
  /** Base URL of the Resonate server; when not set, the object at `RESONATE` is the server. */
  RESONATE_URL: z.url({ protocol: /^https?$/ }),
  /** The account's own Resonate server. */
  RESONATE: binding<ResonateNamespace>(),
  /** Bearer token for the Resonate server, when it requires one. */
  RESONATE_TOKEN: z.string().optional(),
  /** Keys for the arguments and results in the Resonate server: the first one encrypts, all decrypt. */
  ENCRYPTION_KEYS: z.string().regex(KEYS_PATTERN, "must be keys of 32 bytes in base64, separated by commas").optional(),
  /** The worker group that executes the jobs. Never `default`: sleeping promises of every SDK carry that target. */
  RESONATE_GROUP: z
    .string()
    .regex(/^[\w.-]+$/)
    .refine((group) => group !== "default", "must not be `default`")
    .default("workers"),
  /** Put before every promise id, so that several deployments can share one server. */
  RESONATE_NAMESPACE: z.string().regex(NAMESPACE_PATTERN).default(""),
  /** Host names that requests may be addressed to and come from; any when not set. Set on localhost. */
  ALLOWED_HOSTS: list.optional(),
  /** The URL at which clients reach the deployment, without a path. The audience of tokens is derived from it. */
  PUBLIC_URL: TrustedUrl.refine((url) => URL.parse(url)?.pathname === "/", "set it to a URL without a path").optional(),
  /** Origins whose pages may call the server from a browser, `*` for all; none when not set. */
  CORS_ORIGINS: list.optional(),
  /** The Durable Objects that report settlements; without them waits poll. */
  LISTENER: binding<ObjectNamespace>(),
  /** The Durable Objects that hold callers' quotas and lists of jobs. `deploy` and `npm start` require them. */
  CALLER: binding<ObjectNamespace>(),
  /**
   * How many seconds a call waits for its job, when its caller did not ask for progress, before the job's name is the answer.
   * Clients give up after 5 seconds or more, and none states its limit.
   */
  WAIT_SECONDS: z.coerce.number().min(1).max(45).default(4),
  LOG_LEVEL: LogLevel.default("info"),
};

/** The edge's bindings, as wrangler vars and secrets: its own, and what each feature declares. */
const Env = z.object({
  ...edgeVariables,
  ...blockedCallerVariables,
  ...consentVariables,
  ...eventVariables,
  ...operatorVariables,
  ...pageVariables,
  ...quotaVariables,
  ...rateLimitVariables,
  ...retentionVariables,
  ...sharedResonateVariables,
  ...streamVariables,
  ...taskVariables,
  ...traceVariables,
  ...webHookVariables,
});

/** A binding of Durable Objects. Only its location matters here. */
type ObjectNamespace = Pick<ResonateNamespace, "idFromName"> & { get(id: object, options?: object): unknown };

/** The default limits of a caller, or of all callers together, if they are not authenticated. */
const limitsOf = (who: "ofEach" | "ofAll") => ({ ...QUOTAS[who], ...RATE_LIMITS[who], ...STREAM_LIMITS[who] });

/** The bindings of Durable Objects, and their location. */
type Bound = ObjectAddress & { RESONATE?: ResonateNamespace; LISTENER?: ObjectNamespace; CALLER?: ObjectNamespace };

/** Bindings are missing or malformed, so nothing can be served. */
export class ConfigError extends Error {
  override name = "ConfigError";
}

export type Config = z.infer<typeof Env> &
  ReturnType<typeof limitsOf> & {
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
  const variables: Record<string, unknown> & Bound = Object.fromEntries(
    Object.entries(env as Record<string, unknown>).filter(
      ([, value]) => typeof value !== "string" || value.trim() !== "",
    ),
  );
  if (variables.RESONATE_URL !== undefined) delete variables.RESONATE;
  else if (variables.RESONATE) {
    variables.RESONATE_URL = "http://resonate";
    variables.RETENTION_DAYS ??= DEFAULT_DAYS;
  }
  if (variables.RESONATE) variables.RESONATE = withLocation(variables.RESONATE, variables);
  if (variables.LISTENER) variables.LISTENER = withLocation(variables.LISTENER, variables);
  if (variables.CALLER) variables.CALLER = withLocation(variables.CALLER, variables);
  const [general, auth] = [Env.safeParse(variables), AuthConfig.safeParse(variables)];
  const issues = [auth, general].flatMap(({ error }) => error?.issues ?? []);
  const problems = issues.map(({ path, message }) => `${path.join(".")}: ${message}`);
  if (general.success && auth.success) {
    const { PUBLIC_URL, ALLOWED_HOSTS } = general.data;
    if (PUBLIC_URL !== undefined && general.data.ALLOW_LOOPBACK_CALLBACKS === "1")
      problems.push("ALLOW_LOOPBACK_CALLBACKS: it is for development, and not for a deployment with a PUBLIC_URL");
    const limits = limitsOf(auth.data.AUTH_MODE === "none" ? "ofAll" : "ofEach");
    const hasAudience = auth.data.AUTH_MODE !== "oauth" || (auth.data.OAUTH_AUDIENCE ?? PUBLIC_URL ?? ALLOWED_HOSTS);
    const isOperated = hasOperators(general.data);
    if (hasAudience && problems.length === 0) return { ...limits, ...general.data, auth: auth.data, isOperated };
    // The audience never comes from the host name in a request, which its sender chooses.
    if (!hasAudience) problems.push(`PUBLIC_URL: ${AUDIENCE}`);
  }
  throw new ConfigError(`This deployment is misconfigured. ${problems.join("; ")}.`);
}
