/** The requests of the operators' page to the edge. */
import type {
  Action,
  ActionState,
  AuditEntry,
  Filter,
  OneJob,
  Overview,
  Preview,
  Span,
} from "../../core/jobs/index.ts";
import { json, openSession } from "../lib/server.ts";

export type { Action, ActionState, AuditEntry, Filter, Overview, Preview, Span };

/** What workers have reported about a job. */
interface JobReports {
  failure?: { reason: string; stack: string; worker: string; at: number };
  wait?: { state: string; says: string; worker: string; at: number };
}

export type ReportedJob = OneJob & JobReports;

const get = async <T>(path: string, query: object = {}): Promise<T> =>
  json(await fetch(`/operate/${path}?${new URLSearchParams(JSON.parse(JSON.stringify(query)))}`));

const post = async <T>(path: string, body: object): Promise<T> => {
  const headers = { "content-type": "application/json" };
  return json(await fetch(`/operate/${path}`, { method: "POST", headers, body: JSON.stringify(body) }));
};

export const overview = (span: Span) => get<Overview & { who: string }>("overview", { span });
/** The jobs of a filter, for an action on exactly these. */
export const preview = (filter: Filter) => post<Preview>("preview", filter);
export const job = (name: string, values: boolean) =>
  get<ReportedJob>("job", { job: name, ...(values && { values: "1" }) });
export const auditLog = (before?: number) => get<{ entries: AuditEntry[] }>("audit-log", { before });
const stateOf = (n: number) => get<ActionState>("action", { n });

/** Requests an action, and waits until it is over. */
export async function act(action: Action, onProgress: (state: ActionState) => void = () => {}): Promise<ActionState> {
  let state = await post<ActionState>("act", action);
  while (!state.is_over) {
    onProgress(state);
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    state = await stateOf(state.n);
  }
  return state;
}

/** Signs this browser in. */
export const signIn = (token: string): Promise<void> => openSession("/operate/session", token);
