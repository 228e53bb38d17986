/** Serves operators at `/operate`: the page, its data, and their actions. */
import * as z from "zod";
import { type Action, type Filter, type Span, WAIT_STATES } from "../../core/jobs/index.ts";
import { jsonOf, readBytes } from "../../core/resonate/index.ts";
import { assetResponse } from "../../functions/http/assets.ts";
import { isOwnPage } from "../../functions/http/cookies.ts";
import { RULES } from "./alerts.ts";
import { oneJob } from "./one-job.ts";
import type { OperatorOptions } from "./options.ts";
import { operatorOf, session } from "./rights.ts";

const HEADERS = { "cache-control": "no-store", "referrer-policy": "no-referrer" };
const MAX_BODY = 1_000_000;

const text = z.string().min(1).max(1_000);
const Filtered = z.object({
  state: z.enum(["failed", ...WAIT_STATES]).exactOptional(),
  kind: text.exactOptional(),
  reason: text.exactOptional(),
  caller: text.exactOptional(),
  until: z.coerce.number().exactOptional(),
});
const position = z.coerce.number().int().optional().catch(undefined);
// SQLite takes a negative limit for none.
const limit = z.coerce
  .number()
  .int()
  .catch(100)
  .transform((n) => Math.min(Math.max(n, 0), 1_000));
const Page = z.object({ before: position, after: position, limit });
const jobs = z.array(text).min(1).max(10_000);
const Targets = { jobs: jobs.exactOptional(), filter: Filtered.exactOptional() };
const Scope = z.union([
  z.strictObject({ all: z.literal(true) }),
  z.strictObject({ kind: z.string().regex(/^\w+$/) }),
  z.strictObject({ caller: text }),
  z.strictObject({ jobs }),
]);
const RequestedAction: z.ZodType<Action> = z.union([
  z.strictObject({ do: z.literal("retry"), ...Targets, from: z.enum(["start", "last"]).exactOptional() }),
  z.strictObject({ do: z.literal("cancel"), ...Targets }),
  z.strictObject({ do: z.enum(["pause", "resume"]), of: Scope }),
  z.strictObject({ do: z.enum(["stop-starts", "allow-starts"]) }),
  z.strictObject({ do: z.enum(["block", "unblock"]), caller: text }),
]);

const ACTIONS =
  'an action is {"do": "retry"|"cancel", "jobs": [...] or "filter": {...}}, {"do": "pause"|"resume", "of": {"all": true} or {"kind"} or {"caller"} or {"jobs"}}, {"do": "stop-starts"|"allow-starts"} or {"do": "block"|"unblock", "caller"}';

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

/** Answers the request of an operator. */
async function serve(request: Request, who: string, options: OperatorOptions): Promise<Response> {
  const operators = options.operators();
  const { pathname, searchParams } = new URL(request.url);
  const query = Object.fromEntries(searchParams);
  switch (`${request.method} ${pathname}`) {
    case "GET /operate/overview":
      return answer({ who, ...(await operators.overview(spanIn(query.span))) });
    case "GET /operate/metrics":
      return new Response(metricsOf((await operators.overview("hour")).alerts), { headers: HEADERS });
    case "GET /operate/jobs": {
      const { data } = Filtered.safeParse(query);
      return data ? answer(await operators.jobs(data as Filter)) : refuse(400, "There is no such filter.");
    }
    case "GET /operate/job": {
      const job = query.job ?? "";
      const values = query.values === "1";
      if (values) await operators.note(who, "values read", { job });
      const [found, about] = await Promise.all([oneJob(options, job, values, request), operators.about(job)]);
      return found ? answer({ ...found, ...about }) : refuse(404, "No job has this name in the log.");
    }
    case "GET /operate/audit-log":
      return answer({ entries: await operators.auditLog(Page.parse(query)) });
    case "GET /operate/action":
      return answer(await operators.action(Number(query.n)));
    case "POST /operate/act": {
      const body = await readBytes(request, MAX_BODY);
      if (typeof body === "number") return refuse(body, "The body is too large, or did not arrive.");
      const { data } = RequestedAction.safeParse(jsonOf(new TextDecoder().decode(body)));
      if (!data) return refuse(400, `The body is not an action: ${ACTIONS}.`);
      if ((data.do === "retry" || data.do === "cancel") && !data.jobs === !data.filter)
        return refuse(400, `${data.do} takes either jobs or a filter.`);
      return answer(await operators.act(who, data));
    }
    default:
      return refuse(404, "Not found.");
  }
}

const spanIn = (span: string | undefined): Span => (span === "day" || span === "week" ? span : "hour");

/** The alerts in the format of Prometheus: 1 while an alert holds. */
function metricsOf(alerts: readonly { name: string }[]): string {
  const lines = Object.keys(RULES).map(
    (name) => `durable_alert{name="${name}"} ${alerts.some((alert) => alert.name === name) ? 1 : 0}`,
  );
  return `# HELP durable_alert 1 while the alert of this name holds.\n# TYPE durable_alert gauge\n${lines.join("\n")}\n`;
}
