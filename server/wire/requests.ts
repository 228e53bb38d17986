/** Parses requests. Accepts and refuses the same requests as the standalone server. */
import * as z from "zod";
import { isRecord, PROTOCOL_VERSION } from "../../core/resonate/index.ts";
import type { EngineRequest } from "../engine/engine.ts";
import { isAddress } from "./addresses.ts";

const TARGET_TAG = "resonate:target";

/** The most promises that one request reads. */
const MAX_READ_IDS = 100;

const isText = (value: unknown) => typeof value === "string" && value.isWellFormed();
const text = z.string().refine((value) => value.isWellFormed(), "must be valid Unicode");
const required = (name: string) => text.min(1, `${name} is required`);
const address = (role: string) => text.refine(isAddress, `Invalid ${role} address`);
const version = z.int().min(0);
const ttl = z.int().min(1);
/** The protocol's optional fields may be null as well. */
const optional = <T extends z.ZodType>(type: T) => type.nullish().transform((value) => value ?? undefined);
// Not `z.record`, which drops a key `__proto__`.
const map = z.custom<Record<string, string>>(
  (value) => isRecord(value) && Object.entries(value).flat().every(isText),
  "must be an object of strings",
);
const tags = map.refine((value) => isAddress(value[TARGET_TAG] ?? "http://none"), `Invalid ${TARGET_TAG} address`);
const value = z
  .object({ headers: map.nullish(), data: text.nullish() })
  .transform(({ headers, data }) => ({ ...(headers && { headers }), ...(data != null && { data }) }));
const page = { limit: optional(z.int().min(1).max(1000)), cursor: optional(text) };

const promise = z.object({ id: required("Promise ID") });
const task = z.object({ id: required("Task ID") });
const schedule = z.object({ id: required("Schedule ID") });
const create = z.object({
  id: required("Promise ID").refine((id) => !id.includes("\0"), "Promise ID must not contain null bytes"),
  timeoutAt: z.int().min(0),
  param: value.default({}),
  tags: tags.default({}),
});
const settle = promise.extend({
  state: z.enum(["resolved", "rejected", "rejected_canceled"]),
  value: value.default({}),
});
const registration = z
  .object({ awaited: required("Awaited promise ID"), awaiter: required("Awaiter promise ID") })
  .refine(({ awaited, awaiter }) => awaited !== awaiter, "Awaited and awaiter must be different promises");

/** A request within a request. It must have a head, whose content is ignored. */
const action = <T extends z.ZodType>(data: T) => z.object({ kind: z.string(), head: z.looseObject({}), data });
const fencedAction = z.discriminatedUnion("kind", [
  z.object({ kind: z.literal("promise.create"), data: create }),
  z.object({ kind: z.literal("promise.settle"), data: settle }),
]);

const operations: Record<EngineRequest["kind"], z.ZodType> = {
  "promise.get": promise,
  "promise.create": create,
  "promise.settle": settle,
  "promise.forget": promise,
  "promise.read": z.object({
    ids: z.array(z.string()).min(1).max(MAX_READ_IDS),
    address: optional(address("listener")),
    maxValue: optional(z.int().min(0)),
  }),
  "promise.register_callback": registration,
  "promise.register_listener": z.object({ awaited: required("Awaited promise ID"), address: address("listener") }),
  "promise.search": z.object({
    state: optional(z.enum(["pending", "resolved", "rejected", "rejected_canceled", "rejected_timedout"])),
    tags: optional(map),
    ...page,
  }),
  "task.get": task,
  "task.create": z.object({
    pid: required("Process ID"),
    ttl,
    action: action(create).refine(({ data }) => TARGET_TAG in data.tags, `Action must have a ${TARGET_TAG} tag`),
  }),
  "task.acquire": task.extend({ version, pid: required("Process ID"), ttl, records: optional(z.int().min(0)) }),
  "task.release": task.extend({ version }),
  "task.suspend": task
    .extend({ version, actions: z.array(action(registration)).min(1) })
    .refine(({ id, actions }) => actions.every(({ data }) => data.awaiter === id), "Awaiter must be the task"),
  "task.fulfill": task
    .extend({ version, action: action(settle) })
    .refine(({ id, action }) => action.data.id === id, "Action ID must match the task ID"),
  "task.fence": task
    .extend({ version, action: fencedAction })
    .refine(({ id, action }) => action.data.id !== id, "Action ID must not equal the task ID"),
  "task.heartbeat": z.object({
    pid: required("Process ID"),
    tasks: z.array(z.object({ id: text, version: z.int() })),
  }),
  "task.halt": task,
  "task.continue": task,
  "task.search": z.object({
    state: optional(z.enum(["pending", "acquired", "suspended", "halted", "fulfilled"])),
    ...page,
  }),
  "schedule.get": schedule,
  "schedule.create": schedule.extend({
    cron: required("Cron expression"),
    promiseId: required("Promise ID template"),
    promiseTimeout: z.int().min(0),
    promiseParam: value.default({}),
    promiseTags: tags.default({}),
  }),
  "schedule.delete": schedule,
  "schedule.search": z.object({ tags: optional(map), ...page }),
};

const Envelope = z.object({
  kind: text.min(1),
  head: z.object({ corrId: z.string(), version: z.string(), auth: z.string().exactOptional().catch("") }),
  data: z.looseObject({}),
});

interface Head {
  kind?: string | undefined;
  corrId?: string | undefined;
  auth?: string | undefined;
}

/** A request that is refused, with as much of its head as could be read. */
export class InvalidRequest extends Error {
  readonly status: 400 | 403;
  readonly kind: string;
  readonly corrId: string;
  readonly auth: string | undefined;

  constructor(status: 400 | 403, reason: string, { kind = "unknown", corrId = "0", auth }: Head) {
    super(reason);
    this.status = status;
    this.kind = kind;
    this.corrId = corrId;
    this.auth = auth;
  }
}

/** @throws {InvalidRequest} */
export function parseRequest(body: Uint8Array): EngineRequest {
  const raw = parseJson(body);
  const envelope = Envelope.safeParse(raw);
  if (!envelope.success)
    throw new InvalidRequest(400, `Invalid request envelope: ${reasons(envelope.error)}`, Hints.parse(raw));
  const { kind, head, data } = envelope.data;
  const refuse = (reason: string, status: 400 | 403 = 400) =>
    new InvalidRequest(status, reason, { kind, corrId: head.corrId, auth: head.auth });
  if (head.version !== PROTOCOL_VERSION) {
    throw refuse(`Unsupported protocol version '${head.version}', supported versions: ["${PROTOCOL_VERSION}"]`);
  }
  // The standalone server accepts these only in its debug mode.
  if (kind.startsWith("debug.")) throw refuse("Debug operations are disabled", 403);
  const schema = Object.hasOwn(operations, kind) ? operations[kind as keyof typeof operations] : undefined;
  if (!schema) throw refuse(`Unknown operation: ${kind}`);
  const parsed = schema.safeParse(data);
  if (!parsed.success) throw refuse(`Invalid request: ${reasons(parsed.error)}`);
  return { kind, head, data: parsed.data } as EngineRequest;
}

const UTF_8 = new TextDecoder("utf-8", { fatal: true });

function parseJson(body: Uint8Array): unknown {
  try {
    return JSON.parse(UTF_8.decode(body));
  } catch (error) {
    throw new InvalidRequest(400, `Invalid request envelope: ${(error as Error).message}`, {});
  }
}

const hint = z.string().optional().catch(undefined);
const Hints = z
  .object({ kind: hint, head: z.object({ corrId: hint, auth: hint }).catch({}) })
  .transform(({ kind, head }): Head => ({ kind, ...head }))
  .catch({});

function reasons(error: z.ZodError): string {
  return error.issues
    .map(({ path, message }) => (path.length > 0 ? `${path.join(".")}: ${message}` : message))
    .join("; ");
}
