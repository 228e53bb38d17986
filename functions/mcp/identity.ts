import type { EdgeFeature, Era } from "../../core/feature.ts";
import type { Tool } from "../../core/tools/index.ts";

/** How the tools of this deployment are meant to be used. */
export function instructionsOf(tools: readonly Tool[], own: string | undefined): string {
  const starting = namesOf(tools.filter(({ returnsAtOnce }) => returnsAtOnce));
  const waiting = namesOf(tools.filter(({ start, tasksOnly }) => start && !tasksOnly));
  const lines = [
    ...(own === undefined ? [] : [own.trim()]),
    "Tools for work that outlasts a tool call. Starting a job returns its job_name at once; the job continues by itself, " +
      "survives crashes and restarts, and its result stays available under that name in every later conversation.",
    ...(starting ? [`- Start: ${starting} return at once.`] : []),
    ...(waiting ? [`- Call: ${waiting} start a job and wait for a while; a long one answers with its job_name.`] : []),
    "- Starting the same job again is safe: it finds the one that is there, and never runs it twice; one that failed is " +
      "started anew.",
    "- Look: probe_status tells how jobs are without waiting.",
    "- Wait: await_result waits for results. Names it returns as running have not failed: await them again, or tell " +
      "the user and come back later. Start several jobs first, then await them together.",
    "- Asked: a running job with waiting_for waits for an answer. Tell the user what it asks; answer_question takes the " +
      "answer only where answered_by is anyone. An argument by which the user agrees is never set unasked.",
    "- Later: keep the names, or start again with the same arguments, to collect results in another conversation; " +
      "list_jobs finds names that were lost.",
    "When a call fails because the Resonate server cannot be reached, repeat the same call.",
  ];
  return lines.join("\n");
}

function namesOf(tools: readonly Tool[]): string {
  const names = tools.map(({ name }) => name);
  return names.length < 2 ? names.join("") : `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`;
}

/** How long a client may cache what only a new deployment changes; `ttlMs` in milliseconds. */
export const LIST_CACHE = { ttlMs: 5 * 60_000, cacheScope: "public" } as const;

/** What the server and its features can do, for clients of an era. */
export function capabilities(era: Era, features: readonly EdgeFeature[]): object {
  const all: Record<string, object | undefined> = { tools: {}, resources: {} };
  const extensions: Record<string, object> = {};
  for (const feature of features) {
    const { extensions: more, ...others } = feature.capabilities?.(era) ?? {};
    Object.assign(all, others);
    Object.assign(extensions, more);
  }
  return Object.keys(extensions).length > 0 ? { ...all, extensions } : all;
}

const RESULT_TEMPLATES = [
  {
    uriTemplate: "job://{name}{?offset,fields}",
    name: "job",
    title: "A job and its result",
    description:
      "How a job is, and its result as JSON. A result that is larger than an answer may be is there in part: read on with " +
      "offset, the next_offset of the part before. fields, separated by commas, picks some of it.",
    mimeType: "application/json",
  },
];

/** The results of the methods that list something. They are always the same. */
export function listsOf(tools: readonly object[], features: readonly EdgeFeature[]): Record<string, object> {
  const lists: Record<string, Record<string, readonly object[]>> = {
    "tools/list": { tools },
    // Jobs are resources, but only found by name. Hosts ask for these lists as soon as they are connected.
    "resources/list": { resources: [] },
    "resources/templates/list": { resourceTemplates: RESULT_TEMPLATES },
  };
  for (const [method, additions] of features.flatMap(({ listing = {} }) => Object.entries(listing))) {
    const list = lists[method] ?? {};
    for (const [name, entries] of Object.entries(additions)) list[name] = [...(list[name] ?? []), ...entries];
    lists[method] = list;
  }
  return lists;
}
