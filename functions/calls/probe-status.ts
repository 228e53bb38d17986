/** `probe_status`: the state of jobs, without waiting. */
import * as z from "zod";
import { referringPart } from "../../core/author/index.ts";
import {
  activityOf,
  currentJobOf,
  type DurablePromise,
  JobView,
  type PartialRange,
  partialOf,
  ReadRoom,
  type RemoteStore,
  undecryptableView,
  viewOf,
} from "../../core/jobs/index.ts";
import { undecryptableIn } from "../../core/resonate/index.ts";
import {
  ANSWER_SUBJECT,
  arrange,
  builtInTool,
  cutToLimit,
  jobNames,
  linksTo,
  MAX_ANSWER,
  noteOn,
  type Selection,
  viewOfOmitted,
  viewOfRange,
} from "../../core/tools/index.ts";
import { alwaysListed, newerOf, partial_from, partialIn, partialRangeOf, referringResults } from "./job-views.ts";

/** How many characters of stored arguments and results one call reads: of a hundred results of 100 KB each is read. */
const MAX_READ_CHARACTERS = 16_000_000;

/** How many characters of JSON a value may have that is read with its state, at once with those of other jobs. */
const MAX_VALUE = 40_000;

/** Which parts of results are wanted. The URIs of resources have the same parameters, but not all clients read resources. */
const selection = {
  result: z.enum(["none", "summary", "full"]).optional().describe("How much."),
  fields: z.array(z.string().max(200)).max(50).optional().describe("Such as daily.time."),
  offset: z.int().min(0).optional().describe("In a large one."),
  limit: z.int().optional().describe("Characters."),
};

export const probeStatus = builtInTool({
  name: "probe_status",
  title: "Probe job status",
  description: "Check the status of jobs, and read a result, without waiting.",
  input: z.object({ job_names: jobNames, ...selection, partial_from }),
  output: z.object({
    statuses: z.array(JobView).describe("One entry a name, in the order asked."),
    note: z.string().optional(),
  }),
  annotations: { readOnlyHint: true, idempotentHint: true, openWorldHint: false },
  _meta: alwaysListed,
  async run({ job_names, partial_from, ...selected }, { store, signal }) {
    const foreign = new Map<string, unknown>();
    const partial = partialRangeOf(partial_from, job_names.length);
    // Each result is cut to its largest size as soon as it is read: an isolate has no room for a hundred whole results.
    const readCut = async (name: string, maxValue?: number) => {
      const reading = readJob(store, name, selected, partial, signal, maxValue);
      const { promise, view: fullView } = await reading.catch((error): Awaited<typeof reading> => {
        const undecryptable = job_names.length > 1 ? undecryptableIn(error) : undefined;
        if (!undecryptable) throw error;
        return { view: undecryptableView(name, undecryptable) };
      });
      const omitted = selected.result === "none" ? undefined : promise?.omitted;
      if (promise?.job.returnsToolResult && omitted === undefined) foreign.set(name, referringPart(promise));
      const { partial: partialResults, ...view } = fullView;
      const job = omitted === undefined ? cutToLimit(view, selected, MAX_ANSWER) : viewOfOmitted(view, omitted);
      const characters = promise?.characters ?? 0;
      const whole = partialResults ? { ...job, view: { ...job.view, partial: partialResults } } : job;
      return { name, characters, isOmitted: omitted !== undefined, job: whole };
    };
    const jobs = await readInRoom(store, job_names, readCut);
    const { views, leftOut } = arrange(
      jobs.map(({ job }) => job),
      MAX_ANSWER,
    );
    const arranged = { views, leftOut: leftOut + job_names.length - jobs.length };
    const note = noteOn(arranged);
    const links = linksTo(arranged.views.map(({ summary }) => summary));
    const files = [referringResults(arranged.views, foreign), arranged.views.map(({ partial }) => partial)];
    return { statuses: arranged.views, ...(note !== undefined && { note }), [ANSWER_SUBJECT]: { links, files } };
  },
});

interface ReadJob {
  name: string;
  characters: number;
  isOmitted: boolean;
}

/** Reads jobs: first without their long values, if the server leaves these out, and then the long ones that there is room for. */
async function readInRoom<Read extends ReadJob>(
  store: RemoteStore,
  names: readonly string[],
  read: (name: string, maxValue?: number) => Promise<Read>,
): Promise<Read[]> {
  const room = new ReadRoom(MAX_READ_CHARACTERS);
  const charactersOf = ({ characters }: Read) => characters;
  const isBounded = () => store.client.readsMany() === true;
  const maxValue = names.length > 1 ? MAX_VALUE : undefined;
  const jobs = await room.read(names, (name) => read(name, maxValue), charactersOf, { isBounded });
  const omitted = jobs.filter(({ isOmitted }) => isOmitted);
  const whole = await room.read(omitted, ({ name }) => read(name), charactersOf);
  const byJob = new Map(whole.map((job, i) => [omitted[i], job]));
  return jobs.map((job) => byJob.get(job) ?? job);
}

/** A job with its view, which for a running job has its activity. */
async function readJob(
  store: RemoteStore,
  name: string,
  selected: Selection,
  range: PartialRange,
  signal: AbortSignal,
  maxValue?: number,
): Promise<{ promise?: DurablePromise; view: JobView }> {
  const promise = await store.get(name, signal, maxValue);
  if (!promise) return { view: viewOf(name, promise) };
  const view = await viewOfRange(store, promise, selected, MAX_ANSWER, signal);
  if (promise.state !== "pending") {
    const partial = range.from === undefined ? undefined : await partialOf(store, promise.id, range, signal);
    return { promise, view: { ...view, ...(await newerOf(store, promise, signal)), ...(partial && { partial }) } };
  }
  const current = await currentJobOf(store, promise, signal, "recent");
  const partial = await partialIn(store, current, range, signal);
  return { promise, view: { ...view, ...activityOf(current, Date.now()), ...(partial && { partial }) } };
}
