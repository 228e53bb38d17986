/**
 * Values of the protocol as servers send them. Many servers send null for an optional field that they do not set, which clients
 * refuse, and hints of the wrong type. A hint only describes, so an odd one is no reason to lose what it describes.
 */
import { specTypeSchemas } from "@modelcontextprotocol/client";
import { isRecord } from "../../core/resonate/index.ts";
import { MAX_LEVELS } from "./host/host-config.ts";

/** The object without its own fields that are null; another value as it is. */
export function withoutNulls<Value>(value: Value): Value {
  if (!isRecord(value)) return value;
  const entries = Object.entries(value);
  const present = entries.filter(([, field]) => field !== null);
  return present.length === entries.length ? value : (Object.fromEntries(present) as Value);
}

/** The value with some of its fields changed by functions; fields that it lacks stay absent. */
function withFields<Value>(value: Value, changes: Readonly<Record<string, (field: unknown) => unknown>>): Value {
  if (!isRecord(value)) return value;
  const fields = withoutNulls(value);
  const changed = Object.entries(changes)
    .filter(([key]) => fields[key] !== undefined)
    .map(([key, change]) => [key, change(fields[key])] as const)
    .filter(([key, field]) => field !== fields[key]);
  return changed.length === 0 ? fields : withoutUndefined({ ...fields, ...Object.fromEntries(changed) });
}

const withoutUndefined = <Value extends object>(value: Value): Value =>
  Object.fromEntries(Object.entries(value).filter(([, field]) => field !== undefined)) as Value;

const each = (change: (item: unknown) => unknown) => (list: unknown) => (Array.isArray(list) ? list.map(change) : list);

/** Keeps the hints that the schema accepts, and those that it does not know. */
const hintsBy =
  (type: "ToolAnnotations" | "Annotations") =>
  (hints: unknown): unknown => {
    if (!isRecord(hints)) return undefined;
    const accepts = (hint: object) => {
      const { issues } = specTypeSchemas[type]["~standard"].validate(hint) as { issues?: unknown };
      return issues === undefined;
    };
    return Object.fromEntries(Object.entries(hints).filter(([name, hint]) => accepts({ [name]: hint })));
  };

const hints = hintsBy("Annotations");

/** An entry of a list of tools. */
export const tidyTool = <Entry>(tool: Entry): Entry =>
  withFields(tool, {
    annotations: hintsBy("ToolAnnotations"),
    execution: withoutNulls,
    icons: each(withoutNulls),
    inputSchema: withoutNulls,
    outputSchema: withoutNulls,
  });

/** An entry of a list of prompts, resources or templates of resources. */
export const tidyEntry = <Entry>(entry: Entry): Entry =>
  withFields(entry, { annotations: hints, arguments: each(withoutNulls), icons: each(withoutNulls) });

/** A part of an answer or a prompt. */
const tidyPart = (part: unknown): unknown =>
  withFields(part, { annotations: hints, icons: each(withoutNulls), resource: withoutNulls });

/** The result of a call, a prompt, a read or a completion. */
export const tidyResult = <Result>(result: Result): Result =>
  withFields(result, {
    completion: withoutNulls,
    content: each(tidyPart),
    contents: each(withoutNulls),
    messages: each((message) =>
      withFields(message, { content: (part) => (Array.isArray(part) ? each(tidyPart)(part) : tidyPart(part)) }),
    ),
  });

/** The form of a question. */
export const tidyForm = <Form>(form: Form): Form =>
  withFields(form, {
    properties: (properties) =>
      isRecord(properties)
        ? Object.fromEntries(Object.entries(properties).map(([name, property]) => [name, withoutNulls(property)]))
        : properties,
  });

/** Removes the null fields from a server's description of itself, in place: the SDK reads the same object. */
export function tidyHandshake(message: unknown): void {
  const { result } = Object(message);
  if (!isRecord(result) || !isRecord(result.capabilities)) return;
  for (const value of [result, result.capabilities, result.serverInfo, ...Object.values(result.capabilities)]) {
    if (!isRecord(value)) continue;
    for (const [key, field] of Object.entries(value)) if (field === null) delete value[key];
  }
}

/** A message as the SDK accepts it, changed in place: an error that names its request by null names none. */
export function tidyMessage(message: unknown): unknown {
  if (Array.isArray(message)) return message.map(tidyMessage);
  if (isRecord(message)) for (const field of ["id", "error"]) if (message[field] === null) delete message[field];
  tidyHandshake(message);
  return message;
}

/** A value without what is nested more than {@link MAX_LEVELS} levels deep. */
export function cutDepths(value: unknown, levels = MAX_LEVELS): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (levels === 0) return null;
  if (Array.isArray(value)) return value.map((item) => cutDepths(item, levels - 1));
  return Object.fromEntries(Object.entries(value).map(([key, field]) => [key, cutDepths(field, levels - 1)]));
}

/** Whether a value is nested more than {@link MAX_LEVELS} levels deep. */
export function isTooDeep(value: unknown): boolean {
  let level: unknown[] = [value];
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > MAX_LEVELS) return true;
    level = level.flatMap((item) => (typeof item === "object" && item !== null ? Object.values(item) : []));
  }
  return false;
}
