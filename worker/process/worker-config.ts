import * as z from "zod";
import { NAMESPACE } from "../../core/store/ids.ts";
import { KEYS } from "../../core/store/sealing.ts";

const url = z.url({ protocol: /^https?$/ }).transform((text) => text.replace(/\/+$/, ""));
const count = z.coerce.number().int().min(1);
const seconds = z.coerce.number().min(0).max(3600);

const group = z
  .string()
  .regex(/^[\w.-]+$/, "may hold letters, digits, '.', '_' and '-'")
  // Every sleeping promise is addressed to the group `default`; a worker there would get them all.
  .refine((group) => group !== "default", "must not be 'default', a name the Resonate client library keeps for timers");

/** The environment variables of the worker; an empty one counts as not set. */
const Environment = z.object({
  /** Set in the worker's image, where no Resonate server listens on loopback. */
  CONTAINER: z.string().optional(),
  RESONATE_URL: url.default("http://127.0.0.1:8001"),
  RESONATE_TOKEN: z.string().optional(),
  /** What arguments and results are encrypted with before the Resonate server gets them: the first; all decrypt. */
  ENCRYPTION_KEYS: z.string().regex(KEYS, "must be keys of 32 bytes in base64, separated by commas").optional(),
  /** Of the deployment: where jobs go whose definition names no other. */
  RESONATE_GROUP: group.default("workers"),
  /** Whose jobs this worker takes; the deployment's when left out. */
  WORKER_GROUP: group.optional(),
  RESONATE_NAMESPACE: z.string().regex(NAMESPACE, "must not contain ':', '~' or control characters").default(""),
  LOG_LEVEL: z.enum(["trace", "debug", "info", "warn", "error", "fatal", "silent"]).default("info"),
  HEALTH_HOST: z.string().default("127.0.0.1"),
  HEALTH_PORT: z.coerce.number().int().min(0).max(65_535).default(8081),
  /** Domain names under which the health port is asked, separated by commas; addresses and names without a dot always are. */
  HEALTH_NAMES: z
    .string()
    .default("")
    .transform((text) => text.split(",").map((name) => name.trim().toLowerCase())),
  /** How long a task stays this worker's without a sign of life; a killed worker's jobs move on after it. */
  LEASE_SECONDS: seconds.min(1).default(15),
  /** How long running jobs may go on after SIGTERM before they are handed back. */
  DRAIN_SECONDS: seconds.default(10),
  /** How many jobs of each kind may be executing at once; a job that sleeps does not count. */
  MAX_TASKS: count.default(100),
  /** How many more of each kind it takes and keeps waiting: what is not taken, the server dispatches again and again. */
  MAX_QUEUED: z.coerce.number().int().min(0).default(1_000),
  /** Where traces go, by OTLP over HTTP; none without. The exporter reads this and its companions itself. */
  OTEL_EXPORTER_OTLP_ENDPOINT: url.optional(),
});

export type WorkerConfig = z.infer<typeof Environment>;

/** Reads the configuration from `env`; throws an Error that names each variable that is wrong. */
export function readConfig(env: NodeJS.ProcessEnv): WorkerConfig {
  const given = Object.fromEntries(Object.entries(env).filter(([, value]) => value !== ""));
  if (given.CONTAINER !== undefined && given.RESONATE_URL === undefined) {
    throw new Error(
      "Configuration: RESONATE_URL: must be set in a container, where no Resonate server listens on 127.0.0.1",
    );
  }
  const parsed = Environment.safeParse(given);
  if (parsed.success) return parsed.data;
  const problems = parsed.error.issues.map(({ path, message }) => `${path.join(".")}: ${message}`);
  throw new Error(`Configuration: ${problems.join("; ")}`);
}
