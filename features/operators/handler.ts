/** Serves operators at `/operate`: the page, its data, and their actions. */
import * as z from "zod";
import { type Action, type Filter, type RefusedRequest, WAIT_STATES } from "../../core/jobs/index.ts";
import { jsonOf, readBytes } from "../../core/resonate/index.ts";
import { assetResponse } from "../../functions/http/assets.ts";
import { isOwnPage } from "../../functions/http/cookies.ts";
import { RULES } from "./alerts.ts";
import { oneJob } from "./one-job.ts";
import type { OperatorOptions } from "./options.ts";
import { operatorOf, session } from "./rights.ts";

const HEADERS = { "cache-control": "no-store", "referrer-policy": "no-referrer" };
const MAX_BODY = 1_000_000;

/** How much of what does not fit a refusal says. */
const MAX_ISSUE_CHARACTERS = 500;

const text = z.string().min(1).max(1_000);
const count = z.coerce.number().int();
const named = z
  .strictObject({
    state: z.enum(["failed", ...WAIT_STATES]).exactOptional(),
    kind: text.exactOptional(),
    reason: text.exactOptional(),
    caller: text.exactOptional(),
  })
  .refine(({ state = "failed", reason }) => reason === undefined || state === "failed" || state === "blocked", {
    error: "only jobs that failed or are blocked are found by a reason",
    path: ["reason"],
  });
const Filtered = named as z.ZodType<Filter>;
const jobs = z.array(text).min(1).max(10_000);
const Scope = z.union([
  z.strictObject({ all: z.literal(true) }),
  z.strictObject({ kind: z.string().regex(/^\w+$/) }),
  z.strictObject({ caller: text }),
  z.strictObject({ jobs }),
]);
const preview = z.int();
const from = z.enum(["start", "last"]).exactOptional();
const RequestedAction: z.ZodType<Action> = z.union([
  z.strictObject({ do: z.literal("retry"), jobs, from }),
  z.strictObject({ do: z.literal("retry"), preview, from }),
  z.strictObject({ do: z.literal("cancel"), jobs }),
  z.strictObject({ do: z.literal("cancel"), preview }),
  z.strictObject({ do: z.enum(["pause", "resume"]), of: Scope }),
  z.strictObject({ do: z.enum(["stop-starts", "allow-starts"]) }),
  z.strictObject({ do: z.enum(["block", "unblock"]), caller: text }),
]);

/** The parameters of each path that is read. Others are refused: a misspelled one would widen what is asked for. */
const QUERIES = {
  overview: z.strictObject({ span: z.enum(["hour", "day", "week"]).default("hour") }),
  metrics: z.strictObject({}),
  jobs: Filtered,
  job: z.strictObject({ job: text, values: z.literal("1").exactOptional() }),
  auditLog: z.strictObject({
    before: count.exactOptional(),
    after: count.exactOptional(),
    limit: count.pipe(z.int().min(0).max(1_000)).default(100),
  }),
  action: z.strictObject({ n: count }),
};

const ACTIONS =
  'an action is {"do": "retry"|"cancel", "jobs": [...] or "preview": the number of one}, {"do": "pause"|"resume", "of": {"all": true} or {"kind"} or {"caller"} or {"jobs"}}, {"do": "stop-starts"|"allow-starts"} or {"do": "block"|"unblock", "caller"}; a preview is made of a filter at /operate/preview';

const answer = (body: unknown, status = 200) => Response.json(body, { status, headers: HEADERS });
const refuse = (status: number, error: string) => answer({ error }, status);

/** Answers a request to a path under `/operate`. */
export async function operate(request: Request, options: OperatorOptions): Promise<Response> {
  const { pathname } = new URL(request.url);
  if (pathname === "/operate" && request.method === "GET")
    return (
      (await assetResponse(options.pages, "operate.html", request)) ?? refuse(404, "This deployment has no pages.")
    );
  if (pathname === "/operate/session") return signIn(request, options);
  const who = await operatorOf(request, options);
  return who instanceof Response ? who : serve(request, who, options);
}

/** Signs a browser in, or out. */
async function signIn(request: Request, options: OperatorOptions): Promise<Response> {
  if (!isOwnPage(request)) return refuse(403, "Only a page of this server may.");
  if (!options.pages.seal) return refuse(403, "No browser can sign in here: that takes a VIEW_KEY.");
  const cookie = await session(request, options);
  return cookie === undefined
    ? refuse(401, "This is not an operator's token.")
    : new Response(null, { status: 204, headers: { ...HEADERS, "set-cookie": cookie } });
}

/** A request of an operator does not fit its path, or names what is not there. The message says why. */
class RequestRefused extends Error {
  override name = "RequestRefused";
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

/** Answers the request of an operator. */
async function serve(request: Request, who: string, options: OperatorOptions): Promise<Response> {
  try {
    return (
      (await (request.method === "POST" ? change(request, who, options) : read(request, who, options))) ?? NOT_FOUND()
    );
  } catch (error) {
    if (error instanceof RequestRefused) return refuse(error.status, error.message);
    throw error;
  }
}

const NOT_FOUND = () => refuse(404, "Not found.");

async function read(request: Request, who: string, options: OperatorOptions): Promise<Response | undefined> {
  const operators = options.operators();
  const { pathname, searchParams } = new URL(request.url);
  const query = <T>(schema: z.ZodType<T>) => parsedQuery(searchParams, schema);
  switch (`${request.method} ${pathname}`) {
    case "GET /operate/overview":
      return answer({ who, ...(await operators.overview(query(QUERIES.overview).span)) });
    case "GET /operate/metrics":
      query(QUERIES.metrics);
      return new Response(metricsOf((await operators.overview("hour")).alerts), { headers: HEADERS });
    case "GET /operate/jobs":
      return answer(granted(await operators.jobs(query(QUERIES.jobs))));
    case "GET /operate/job": {
      const { job, values } = query(QUERIES.job);
      if (values) await operators.note(who, "values read", { job });
      const [found, about] = await Promise.all([oneJob(options, job, values === "1", request), operators.about(job)]);
      return found ? answer({ ...found, ...about }) : refuse(404, "No job has this name in the log.");
    }
    case "GET /operate/audit-log":
      return answer({ entries: await operators.auditLog(query(QUERIES.auditLog)) });
    case "GET /operate/action":
      return answer(await operators.action(query(QUERIES.action).n));
    default:
      return undefined;
  }
}

async function change(request: Request, who: string, options: OperatorOptions): Promise<Response | undefined> {
  const operators = options.operators();
  switch (new URL(request.url).pathname) {
    case "/operate/preview":
      return answer(granted(await operators.preview(await parsedBody(request, Filtered, "a filter"))));
    case "/operate/act": {
      const action = await parsedBody(request, RequestedAction, `an action: ${ACTIONS}`);
      return answer(granted(await operators.act(who, action)));
    }
    default:
      return undefined;
  }
}

/** The parameters of a request. @throws {RequestRefused} for a repeated, unknown or malformed one */
function parsedQuery<T>(query: URLSearchParams, schema: z.ZodType<T>): T {
  const repeated = [...query.keys()].find((name) => query.getAll(name).length > 1);
  if (repeated !== undefined) throw new RequestRefused(400, `The query has ${repeated} more than once.`);
  const { data, error } = schema.safeParse(Object.fromEntries(query));
  if (error) throw new RequestRefused(400, `The query does not fit: ${issuesIn(error)}.`);
  return data;
}

async function parsedBody<T>(request: Request, schema: z.ZodType<T>, what: string): Promise<T> {
  const body = await readBytes(request, MAX_BODY);
  if (typeof body === "number") throw new RequestRefused(body, "The body is too large, or did not arrive.");
  const { data, error } = schema.safeParse(jsonOf(new TextDecoder().decode(body)));
  if (error) throw new RequestRefused(400, `The body is not ${what} (${issuesIn(error)}).`);
  return data;
}

const issuesIn = ({ issues }: z.ZodError): string =>
  issues
    .map(({ path, message }) => [path.join("."), message].filter(Boolean).join(": "))
    .join("; ")
    .slice(0, MAX_ISSUE_CHARACTERS);

/** The answer of the operators' object. @throws {RequestRefused} if it refuses the request */
function granted<T extends object>(found: T | RefusedRequest): T {
  if ("refused" in found) throw new RequestRefused(400, found.refused);
  return found as T;
}

/** The alerts in the format of Prometheus: 1 while an alert holds. */
function metricsOf(alerts: readonly { name: string }[]): string {
  const lines = Object.keys(RULES).map(
    (name) => `durable_alert{name="${name}"} ${alerts.some((alert) => alert.name === name) ? 1 : 0}`,
  );
  return `# HELP durable_alert 1 while the alert of this name holds.\n# TYPE durable_alert gauge\n${lines.join("\n")}\n`;
}
