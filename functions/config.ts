import * as z from "zod";

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
  /** Comma-separated host names a request may be addressed to and come from; unset means any. Set on localhost. */
  ALLOWED_HOSTS: z.string().optional(),
});
export type Config = z.infer<typeof Env>;

/**
 * Reads the bindings.
 *
 * @throws {Error} naming the variable that is missing or malformed
 */
export function readConfig(env: unknown): Config {
  const parsed = Env.safeParse(env);
  if (parsed.success) return parsed.data;
  const problems = parsed.error.issues.map((issue) => `${issue.path.join(".")}: ${issue.message}`);
  throw new Error(`This deployment is misconfigured. ${problems.join("; ")}`);
}
