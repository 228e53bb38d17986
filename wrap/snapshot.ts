/** The tools of a wrapped server at one point in time. The edge lists them without asking the server. */
import type { Acceptance } from "../core/tools/index.ts";
import { matches, type WrapOptions } from "./wrap-options.ts";

/**
 * A tool as its server lists it.
 *
 * @example
 * const isReader = ({ annotations }: ListedTool) => annotations?.readOnlyHint === true;
 */
export interface ListedTool {
  name: string;
  title?: string;
  description?: string;
  inputSchema: Record<string, unknown>;
  outputSchema?: Record<string, unknown>;
  annotations?: { title?: string; readOnlyHint?: boolean; idempotentHint?: boolean; [hint: string]: unknown };
  execution?: { taskSupport?: string; [field: string]: unknown };
  [field: string]: unknown;
}

/**
 * A prompt, a resource or a template of resources, as its server lists it.
 *
 * @example
 * const prompt: ListEntry = { name: "summary", description: "Summarizes a page." };
 */
export interface ListEntry {
  name: string;
  uri?: string;
  uriTemplate?: string;
  [field: string]: unknown;
}

export const LIST_KINDS = ["prompts", "resources", "resourceTemplates"] as const;

/**
 * A server's lists besides tools, by the field of the protocol's result.
 *
 * @example
 * const lists: Lists = { prompts: [{ name: "summary" }], resources: [], resourceTemplates: [] };
 */
export type Lists = Readonly<Record<(typeof LIST_KINDS)[number], readonly ListEntry[]>>;

/** The key that identifies an entry within its list. */
export const keyOf = ({ uri, uriTemplate, name }: ListEntry): string => uri ?? uriTemplate ?? name;

/**
 * The record of a server that `durable-mcp-edge sync` writes.
 *
 * @example
 * const names = ({ tools }: Snapshot) => tools.map(({ name }) => name);
 */
export interface Snapshot {
  server: { name: string; version: string; title?: string };
  /** The negotiated revision of the protocol. */
  revision: string;
  /** The server's instructions to a model. */
  instructions?: string;
  resources: boolean;
  tools: readonly ListedTool[];
  /** Its prompts, resources and resource templates. */
  lists: Lists;
  /** The further capabilities of the protocol that the server has. */
  offers: readonly Offer[];
  /** The entries of its lists that were not read, and why: one sentence each. */
  omissions?: readonly string[];
  /** The server's present changes that are not listed, because nobody has accepted them: one line each. */
  unapprovedChanges?: readonly string[];
  /** The newest acceptances of a changed list, oldest first. */
  acceptances?: readonly Acceptance[];
  /** The accepted forms of tools that the server has since changed or removed. It may return to them without a new acceptance. */
  formerTools?: readonly ListedTool[];
  /** The same for the other lists. */
  formerLists?: Lists;
}

export const OFFERS = ["completions", "logging", "subscribe"] as const;
/**
 * A further capability of a server that passes through the edge: `completions`, `logging`, or `subscribe` (to resources).
 *
 * @example
 * const offers: Offer[] = ["completions", "subscribe"];
 */
export type Offer = (typeof OFFERS)[number];

/** Bounds on descriptions, in characters, and on tools, in characters of JSON. */
const MAX_DESCRIPTION_CHARACTERS = 8_000;
export const MAX_TOOL_CHARACTERS = 64_000;
export const MAX_INSTRUCTIONS_CHARACTERS = 4_000;
const MAX_TOOLS = 500;

/** The largest number of entries in each list besides tools, per server. */
export const MAX_LIST_ENTRIES = 500;

/** The names of the edge's built-in tools. A wrapped tool with one of these names needs a prefix. */
export const BUILT_IN_TOOL_NAMES: ReadonlySet<string> = new Set([
  "probe_status",
  "await_result",
  "answer_question",
  "cancel_job",
  "list_jobs",
  "forget_jobs",
  "schedule_job",
  "job_card",
  "answer_for_user",
]);

/** The maximum length of a refused name in a message. */
const MAX_NAME_CHARACTERS = 60;

/** Chooses the tools that the edge offers. `omissions`: the tools that it omits, with the reasons. */
export function chooseTools(
  { tools }: Pick<Snapshot, "tools">,
  options: Pick<WrapOptions, "tools" | "prefix">,
): { tools: ListedTool[]; omissions: { name: string; reason: string }[] } {
  const omissions: { name: string; reason: string }[] = [];
  const names = new Set(BUILT_IN_TOOL_NAMES);
  const offeredTools = tools.flatMap((tool) => {
    if (options.tools?.some((pattern) => matches(pattern, tool.name)) === false) return [];
    const reason = omissionReason(tool, options.prefix, names);
    const { name } = tool;
    if (reason === undefined) {
      names.add(prefixedName(name, options.prefix));
      return [limitDescription(tool)];
    }
    const shortName = name.length > MAX_NAME_CHARACTERS ? `${name.slice(0, MAX_NAME_CHARACTERS)}…` : name;
    omissions.push({ name: shortName, reason });
    return [];
  });
  for (const { name } of offeredTools.splice(MAX_TOOLS)) {
    omissions.push({ name, reason: `it is beyond the first ${MAX_TOOLS}` });
  }
  return { tools: offeredTools, omissions };
}

function omissionReason(tool: ListedTool, prefix: string | undefined, names: ReadonlySet<string>): string | undefined {
  const name = prefixedName(tool.name, prefix);
  if (BUILT_IN_TOOL_NAMES.has(name)) return "a built-in tool has this name: give its names a prefix";
  if (names.has(name)) return "another one of its tools is called so";
  if (!/^[A-Za-z0-9_.-]{1,128}$/.test(name)) {
    return `its name is not of up to 128 letters, digits, "_", "-" and "."`;
  }
  if (tool.inputSchema?.type !== "object") return "its arguments are not an object";
  const size = JSON.stringify(limitDescription(tool)).length;
  if (size > MAX_TOOL_CHARACTERS)
    return `it is described in ${size} characters; up to ${MAX_TOOL_CHARACTERS} are passed on`;
  return undefined;
}

/** The tool with its description cut to the limit. */
export function limitDescription(tool: ListedTool): ListedTool {
  const { description } = tool;
  if (typeof description !== "string" || description.length <= MAX_DESCRIPTION_CHARACTERS) return tool;
  return { ...tool, description: `${description.slice(0, MAX_DESCRIPTION_CHARACTERS)}…` };
}

/**
 * The server's instructions, cut to 4,000 characters, for the `instructions` of the edge in front of it.
 *
 * @example
 * const instructionsOf = (snapshot: Snapshot) => instructionsIn(snapshot) ?? "Its reports take minutes.";
 */
export const instructionsIn = ({ instructions }: Snapshot): string | undefined =>
  instructions === undefined ? undefined : instructions.slice(0, MAX_INSTRUCTIONS_CHARACTERS);

export const prefixedName = (name: string, prefix: string | undefined): string =>
  prefix === undefined || prefix === "" ? name : `${prefix}_${name}`;

/** A server's tools by their names. Of two tools with one name, the first counts. */
export function toolsByName({ tools }: Snapshot): Map<string, ListedTool> {
  const byName = new Map<string, ListedTool>();
  for (const tool of tools) if (!byName.has(tool.name)) byName.set(tool.name, tool);
  return byName;
}
