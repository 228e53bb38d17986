import * as z from "zod";
import { AuthConfig } from "./auth/config.ts";
import { LogLevel } from "./log.ts";

/** Comma-separated. */
const list = z.string().transform((text) =>
  text
    .split(",")
    .map((item) => item.trim())
    .filter((item) => item !== ""),
);

/** The edge's bindings, as wrangler vars and secrets. */
const Env = z.object({
  /** Base URL of the Resonate server. */
  RESONATE_URL: z.url({ protocol: /^https?$/ }),
  /** Bearer token for the Resonate server, when it requires one. */
  RESONATE_TOKEN: z.string().optional(),
  /** The worker group that executes the jobs. Never `default`: sleeping promises of every SDK carry that target. */
  RESONATE_GROUP: z
    .string()
    .regex(/^[\w.-]+$/)
    .refine((group) => group !== "default", "must not be `default`")
    .default("workers"),
  /** Put before every promise id, so that several deployments can share one server. */
  RESONATE_NAMESPACE: z
    .string()
    .regex(/^[^:~\p{Cc}]*$/u)
    .default(""),
  /** Seals task ids; at least 32 characters, kept for as long as tasks live. Unset, the server offers no tasks. */
  TASK_KEY: z.string().min(32).optional(),
  /** Host names a request may be addressed to and come from; unset means any. Set on localhost. */
  ALLOWED_HOSTS: list.optional(),
  /** Origins whose pages may call the server from a browser, `*` for all; unset means none. */
  CORS_ORIGINS: list.optional(),
  /** Requests a caller may make in a minute; 0 for any number. Where `RATE_LIMITER` is bound, that decides. */
  RATE_LIMIT: z.coerce.number().int().min(0).exactOptional(),
  /** Cloudflare's rate-limiting binding. */
  RATE_LIMITER: z.custom<RateLimiterBinding>((value) => typeof value === "object").optional(),
  /** Jobs of each length (up to an hour, a day, 30 days, a year) a caller may start in that time; 0 for any number. */
  MAX_JOBS: z.coerce.number().int().min(0).exactOptional(),
  LOG_LEVEL: LogLevel.default("info"),
});

export interface RateLimiterBinding {
  limit(options: { key: string }): Promise<{ success: boolean }>;
}

/** Where callers are authenticated there are limits, unless others are set; where they are not, there is no telling them apart. */
const DEFAULT_LIMITS = { RATE_LIMIT: 600, MAX_JOBS: 1_000 };
const NO_LIMITS = { RATE_LIMIT: 0, MAX_JOBS: 0 };

/** The bindings are missing or malformed: nothing can be served. */
export class ConfigError extends Error {
  override name = "ConfigError";
}

export type Config = z.infer<typeof Env> & typeof NO_LIMITS & { auth: AuthConfig };

/**
 * Reads the bindings.
 *
 * @throws {ConfigError} naming each variable that is missing or malformed, but not its value
 */
export function readConfig(env: unknown): Config {
  const [general, auth] = [Env.safeParse(env), AuthConfig.safeParse(env)];
  if (general.success && auth.success) {
    const limits = auth.data.AUTH_MODE === "none" ? NO_LIMITS : DEFAULT_LIMITS;
    return { ...limits, ...general.data, auth: auth.data };
  }
  const issues = [auth, general].flatMap(({ error }) => error?.issues ?? []);
  const problems = issues.map(({ path, message }) => `${path.join(".")}: ${message}`);
  throw new ConfigError(`This deployment is misconfigured. ${problems.join("; ")}.`);
}
