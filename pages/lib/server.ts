/** The requests of pages: MCP requests like those of any client, and requests for data that only pages get. */
import type { View } from "../../core/author/index.ts";
import type { FeedEntry, JobStatus, JobView, Latest, ObjectView, TimelineEntry } from "../../core/jobs/index.ts";
import { partsIn } from "../../core/resonate/index.ts";
import type { FileView } from "../../core/tools/index.ts";
import { readResult } from "./read-result.ts";

const REVISION = "2026-07-28";
const META = "io.modelcontextprotocol";

/** The part of JSON Schema that forms need. */
export interface FormSchema {
  type?: string | string[];
  title?: string;
  description?: string;
  properties?: Record<string, FormSchema>;
  required?: string[];
  enum?: unknown[];
  oneOf?: { const: unknown; title?: string }[];
  anyOf?: { const?: unknown; title?: string; type?: string }[];
  items?: FormSchema;
  format?: string;
  default?: unknown;
  minimum?: number;
  maximum?: number;
  minLength?: number;
  maxLength?: number;
}

export interface ToolInfo {
  name: string;
  title: string;
  description: string;
  inputSchema: FormSchema;
  kind?: string;
}

export interface About {
  name: string;
  title: string;
  version: string;
  description: string;
  websiteUrl?: string;
  /** The MCP endpoint, if the deployment knows its own address. */
  url?: string;
  auth: "none" | "bearer" | "oauth";
  issuer?: string;
  /** The client id of browsers at the authorization server. */
  client_id?: string;
  sign_in: boolean;
  /** On a local stack: the changes of wrapped servers' lists that nobody has accepted, one line each. */
  unapproved?: { server: string; lines: string[] }[];
  tools: ToolInfo[];
}

export type Status = Exclude<JobStatus, "not_found">;

export interface ListedJob extends Pick<JobView, "job_name" | "finished_at" | "doing" | "waiting_for" | "cleanup"> {
  kind: string;
  labels?: string[];
  status: Status;
  started_at: string;
}

/** A job as its page gets it. Times are ISO 8601 if they are strings, and milliseconds since the epoch if they are numbers. */
export interface JobInfo extends Omit<ListedJob, "doing" | "waiting_for"> {
  args: unknown;
  view?: View;
  result?: unknown;
  error?: string;
  deadline: string;
  doing: Omit<FeedEntry, "questions">;
  partial?: Latest;
  questions: { key: string; message: string; requestedSchema: FormSchema }[];
  timeline: { entries: TimelineEntry[]; next: number };
  /** Whether the job waits for a worker. */
  waits: boolean;
  newer?: { job_name: string; status: Status };
  resumed_from?: string;
  began_anew?: string;
  /** The id of the job's task, for following and answering it; absent for viewers who may only read. */
  task?: string;
  may_write: boolean;
  files?: FileView[];
}

/** A refusal of the server, with a message for people. */
export class Refusal extends Error {
  readonly status: number;

  constructor(message: string, status: number) {
    super(message);
    this.status = status;
  }
}

export async function json<T>(response: Response): Promise<T> {
  if (response.status === 204) return {} as T;
  // An answer without JSON was cut off, but a refusal may have another form.
  const body = await response.json().catch((error) => (response.ok ? Promise.reject(error) : {}));
  if (response.ok) return body;
  throw refusal(body, response);
}

const refusal = ({ error_description, error }: Message, { status }: Response): Refusal =>
  new Refusal(error_description ?? error?.message ?? error ?? `HTTP ${status}`, status);

export const about = async (): Promise<About> => json(await fetch("/pages/about"));

/** A job with the records of its timeline from the `from`th on, and again with those of the numbers `open`. */
export async function job(name: string, from: number, open: readonly number[] = []): Promise<JobInfo> {
  const link = new URLSearchParams(location.search).get("link");
  const path = link === null ? "/pages/job" : `/pages/link/${encodeURIComponent(link)}`;
  return json(await fetch(`${path}?${new URLSearchParams({ name, from: String(from), open: String(open) })}`));
}

/** A job's result. Of one that is stored in parts, the job itself has the beginning alone. @throws {Refusal} */
export async function resultOf({ job_name, result }: JobInfo, probe = probeStatus): Promise<unknown> {
  return partsIn(result) ? readResult(probe, { job: job_name }) : result;
}

export const probeStatus = (args: object) => call<Record<string, unknown>>("probe_status", args);

/** How many bytes of a text file are shown. */
const MAX_TEXT_BYTES = 256 * 1024;

/** The text of a file, or its beginning. */
export async function beginningOf(path: string, size: number): Promise<{ text: string; isComplete: boolean }> {
  const isComplete = size <= MAX_TEXT_BYTES;
  const response = await fetch(path, isComplete ? {} : { headers: { range: `bytes=0-${MAX_TEXT_BYTES - 1}` } });
  return response.ok ? { text: await response.text(), isComplete } : json(response);
}

/** Who is notified of the viewer's jobs, or of one of them; empty if the deployment does not know. */
export async function subscribersOf(name?: string): Promise<Partial<ObjectView>> {
  const query = name === undefined ? "" : `?${new URLSearchParams({ job: name })}`;
  return json(await fetch(`/pages/subscribers${query}`));
}

export async function endSubscription(id: string): Promise<void> {
  await json(await fetch(`/pages/subscribers?${new URLSearchParams({ end: id })}`, { method: "DELETE" }));
}

/** Why the Resonate server does not answer; undefined if it does. */
export async function unavailability(): Promise<string | undefined> {
  const { reason } = await (await fetch("/ready")).json();
  return reason;
}

/** Has the browser stay signed in by a cookie. @throws {Refusal} */
export const openSession = async (path: string, token: string): Promise<void> =>
  json(await fetch(path, { method: "POST", headers: { authorization: `Bearer ${token}` } }));

export async function signIn(token: string): Promise<void> {
  await openSession("/pages/session", token);
  localStorage.setItem(SIGN_IN_KEY, "yes");
}
export async function signOut(): Promise<void> {
  await fetch("/pages/session", { method: "DELETE" });
  localStorage.removeItem(SIGN_IN_KEY);
}
/** Whether this browser has signed in: scripts cannot see the session's cookie. */
export const hasSignedIn = (): boolean => localStorage.getItem(SIGN_IN_KEY) !== null;
const SIGN_IN_KEY = "signed-in";

interface ToolAnswer {
  isError?: boolean;
  content?: { text?: string }[];
  structuredContent?: { job_name?: string };
  _meta?: { job_name?: string };
}

/** @throws {Refusal} */
async function answerOf(name: string, args: object): Promise<ToolAnswer> {
  const answer = await rpc<ToolAnswer>("tools/call", { name, arguments: args });
  if (answer.isError) throw new Refusal(answer.content?.map(({ text }) => text).join("\n") ?? "It failed.", 200);
  return answer;
}

/** The structured content of a tool's result. @throws {Refusal} */
export const call = async <T>(name: string, args: object): Promise<T> =>
  (await answerOf(name, args)).structuredContent as T;

/** Starts a job as a task, so the call returns at once; resolves with the job's name. @throws {Refusal} */
export async function startJob({ name }: ToolInfo, values: object): Promise<string | undefined> {
  const { structuredContent, _meta } = await answerOf(name, values);
  return structuredContent?.job_name ?? _meta?.job_name;
}

/** Answers questions of a task's job. */
export const answer = (taskId: string, inputResponses: object) => rpc("tasks/update", { taskId, inputResponses });

async function rpc<T>(method: string, params: Record<string, unknown>): Promise<T> {
  const response = await send(method, params);
  let answer: Message = {};
  // A slow answer is an event stream whose last message is the response.
  if (isStream(response)) for await (const message of messagesIn(response)) answer = message;
  else answer = await response.json().catch((error) => (response.ok ? Promise.reject(error) : {}));
  if (answer.result) return answer.result;
  if (response.ok && !answer.error) throw new Error("The answer was cut off.");
  throw refusal(answer, response);
}

// oxlint-disable-next-line typescript/no-explicit-any -- any message of the server
type Message = any;

export const isStream = ({ headers }: Response): boolean =>
  headers.get("content-type")?.startsWith("text/event-stream") === true;

/** The messages of an event stream, as they arrive. */
export async function* messagesIn({ body }: Response): AsyncGenerator<Message> {
  let rest = "";
  // Not every browser can iterate over a stream.
  const reader = body?.pipeThrough(new TextDecoderStream()).getReader();
  for (;;) {
    const { done = true, value = "" } = (await reader?.read()) ?? {};
    if (done) return;
    const lines = (rest + value).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) if (line.startsWith("data: ")) yield JSON.parse(line.slice(6));
  }
}

/** Sends an MCP request of a client that understands tasks and shows forms. */
export function send(method: string, params: Record<string, unknown>, signal?: AbortSignal): Promise<Response> {
  const name = params.name ?? params.taskId;
  const _meta = {
    [`${META}/protocolVersion`]: REVISION,
    [`${META}/clientInfo`]: { name: "pages", version: "1.0.0" },
    [`${META}/clientCapabilities`]: { elicitation: {}, extensions: { [`${META}/tasks`]: {} } },
  };
  return fetch("/mcp", {
    method: "POST",
    headers: {
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      "mcp-protocol-version": REVISION,
      "mcp-method": method,
      ...(typeof name === "string" && { "mcp-name": name }),
    },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params: { ...params, _meta } }),
    ...(signal && { signal }),
  });
}
