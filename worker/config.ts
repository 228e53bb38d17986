import * as z from "zod";

const url = z.url({ protocol: /^https?$/ }).transform((text) => text.replace(/\/+$/, ""));
const count = z.coerce.number().int().min(1);
const seconds = z.coerce.number().min(0).max(3600);

/** The environment variables of the worker; an empty one counts as not set. */
const Environment = z.object({
  RESONATE_URL: url.default("http://127.0.0.1:8001"),
  RESONATE_TOKEN: z.string().optional(),
  RESONATE_GROUP: z
    .string()
    .regex(/^[\w.-]+$/, "may hold letters, digits, '.', '_' and '-'")
    // Every sleeping promise is addressed to the group `default`; a worker there would be offered them all.
    .refine(
      (group) => group !== "default",
      "must not be 'default', a name the Resonate client library keeps for timers",
    )
    .default("workers"),
  RESONATE_NAMESPACE: z
    .string()
    .refine((namespace) => !namespace.includes(":"), "must not contain ':'")
    .default(""),
  WEATHER_API_URL: z.url({ protocol: /^https?$/ }).default("https://archive-api.open-meteo.com/v1/archive"),
  LOG_LEVEL: z.enum(["trace", "debug", "info", "warn", "error", "fatal", "silent"]).default("info"),
  HEALTH_HOST: z.string().default("127.0.0.1"),
  HEALTH_PORT: z.coerce.number().int().min(0).max(65_535).default(8081),
  /** How long a task stays this worker's without a sign of life; a killed worker's jobs move on after it. */
  LEASE_SECONDS: seconds.min(1).default(15),
  /** How long running jobs may go on after SIGTERM before they are handed back. */
  DRAIN_SECONDS: seconds.default(10),
  /** How many jobs of each kind may be executing at once; a job that sleeps does not count. */
  MAX_TASKS: count.default(100),
  /** How many requests may be under way to the weather archive at once. */
  UPSTREAM_CONCURRENCY: count.default(8),
  /** Where traces go, by OTLP over HTTP; none without. The exporter reads this and its companions itself. */
  OTEL_EXPORTER_OTLP_ENDPOINT: url.optional(),
  /** The time one request to the weather archive may take, body included. */
  UPSTREAM_TIMEOUT_SECONDS: seconds.min(1).default(30),
});

export type Config = z.infer<typeof Environment>;

/** Reads the configuration from `env`; throws an Error that names each variable that is wrong. */
export function readConfig(env: NodeJS.ProcessEnv): Config {
  const given = Object.fromEntries(Object.entries(env).filter(([, value]) => value !== ""));
  const parsed = Environment.safeParse(given);
  if (parsed.success) return parsed.data;
  const problems = parsed.error.issues.map(({ path, message }) => `${path.join(".")}: ${message}`);
  throw new Error(`Configuration: ${problems.join("; ")}`);
}
