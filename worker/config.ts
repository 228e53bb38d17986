/** The configuration of the worker process: its own variables, and those that features declare. */
import * as z from "zod";
import { KEYS_PATTERN, NAMESPACE_PATTERN } from "../core/resonate/index.ts";
import { serverUrl } from "../core/variables.ts";
import { spanVariables } from "../features/trace/worker-config.ts";
import { workerReportVariables } from "../features/worker-reports/worker-config.ts";

const count = z.coerce.number().int().min(1);
const seconds = z.coerce.number().min(0).max(3600);

const group = z
  .string()
  .regex(/^[\w.-]+$/, "may hold letters, digits, '.', '_' and '-'")
  // The Resonate client library addresses its timers to the group `default`.
  .refine((group) => group !== "default", "must not be 'default', a name the Resonate client library keeps for timers");

const workerVariables = {
  /** Set in the worker's image, where no Resonate server listens on loopback. */
  CONTAINER: z.string().optional(),
  RESONATE_URL: serverUrl.default("http://127.0.0.1:8001"),
  RESONATE_TOKEN: z.string().optional(),
  /** Keys for arguments and results on the Resonate server: the first encrypts, all decrypt. */
  ENCRYPTION_KEYS: z.string().regex(KEYS_PATTERN, "must be keys of 32 bytes in base64, separated by commas").optional(),
  /** The deployment's worker group, for jobs whose definition names no other group. */
  RESONATE_GROUP: group.default("workers"),
  /** The group whose jobs this worker takes; the deployment's by default. */
  WORKER_GROUP: group.optional(),
  RESONATE_NAMESPACE: z
    .string()
    .regex(NAMESPACE_PATTERN, "must not contain ':', '~' or control characters")
    .default(""),
  LOG_LEVEL: z.enum(["trace", "debug", "info", "warn", "error", "fatal", "silent"]).default("info"),
  HEALTH_HOST: z.string().default("127.0.0.1"),
  HEALTH_PORT: z.coerce.number().int().min(0).max(65_535).default(8081),
  /** Domain names for which the health port answers, separated by commas, besides addresses and network-internal names. */
  HEALTH_NAMES: z
    .string()
    .default("")
    .transform((text) => text.split(",").map((name) => name.trim().toLowerCase())),
  /** The edge's public address, and the key that it shares with workers. */
  PUBLIC_URL: serverUrl.optional(),
  VIEW_KEY: z.string().min(32).optional(),
  /** How long a lease lasts without a heartbeat. After that, other workers take over the jobs of a killed worker. */
  LEASE_SECONDS: seconds.min(1).default(15),
  /** How long running jobs may continue after SIGTERM before they are released. */
  DRAIN_SECONDS: seconds.default(10),
  /**
   * In which executions steps that change a variable of their function are refused: in all, in the first of each version of a
   * function, or in none.
   */
  STATE_CHECKS: z.enum(["always", "first", "never"]).default("first"),
  /** How many jobs of each kind execute at once; sleeping jobs do not count. */
  MAX_TASKS: count.default(100),
  /** How many more jobs of each kind are claimed and wait, as the server dispatches unclaimed tasks again and again. */
  MAX_QUEUED: z.coerce.number().int().min(0).default(1_000),
};

/** The environment variables of the worker; an empty one counts as not set. */
const Environment = z.object({ ...workerVariables, ...workerReportVariables, ...spanVariables });

/** The names of these variables. */
export const WORKER_ENVIRONMENT = Object.keys(Environment.shape);

export type WorkerConfig = z.infer<typeof Environment>;

/** Reads the configuration from `env`. @throws {Error} naming each variable that is wrong */
export function readConfig(env: NodeJS.ProcessEnv): WorkerConfig {
  const variables = Object.fromEntries(Object.entries(env).filter(([, value]) => value !== ""));
  if (variables.CONTAINER !== undefined && variables.RESONATE_URL === undefined) {
    throw new Error(
      "Configuration: RESONATE_URL: must be set in a container, where no Resonate server listens on 127.0.0.1",
    );
  }
  const parsed = Environment.safeParse(variables);
  if (parsed.success) return parsed.data;
  const problems = parsed.error.issues.map(({ path, message }) => `${path.join(".")}: ${message}`);
  throw new Error(`Configuration: ${problems.join("; ")}`);
}
