/** `events`: prints the events of the caller's jobs, one line of JSON for each. */
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import * as z from "zod";
import { flag, option, optionList, usageOf } from "../arguments.ts";
import { print, printError } from "../terminal/print.ts";
import { CLIENT_OPTIONS, connectionTo, TOKEN_USAGE } from "./options.ts";

const OPTIONS = {
  follow: flag("print new events until it is interrupted"),
  cursor: option("CURSOR", "begin after the event that had this cursor"),
  job: optionList("NAME", "only of this job; may be repeated"),
  kind: optionList("KIND", "only of jobs of this kind; may be repeated"),
  label: optionList("LABEL", "only of jobs with this label; may be repeated"),
  ...CLIENT_OPTIONS,
};

export const usage = usageOf(
  "[TYPE...] [options]",
  `Prints the events of the caller's jobs, each as a line of JSON: those that the server keeps, or with --follow those that
happen from now on. TYPE is a type of event, such as job.ended; default: all types.

${TOKEN_USAGE}`,
  OPTIONS,
);

/** The pause between two polls, even if the server asks for a longer one. */
const POLL_PAUSE_MS = 2_000;

const Page = z.looseObject({
  events: z.array(z.looseObject({ eventId: z.string() })),
  cursor: z.string(),
  truncated: z.boolean(),
  hasMore: z.boolean(),
});

export async function run(args: string[]): Promise<void> {
  const { values: options, positionals: types } = parseArgs({ args, options: OPTIONS, allowPositionals: true });
  const connection = connectionTo(options.url);
  const request = <T>(method: string, params: object, schema: z.ZodType<T>) =>
    connection.ask(async (client) =>
      schema.parse(await client.request({ method, params } as never, z.looseObject({}))),
    );
  try {
    const list = await request(
      "events/list",
      {},
      z.looseObject({ events: z.array(z.looseObject({ name: z.string() })) }),
    );
    const names = types.length > 0 ? types : list.events.map(({ name }) => name);
    const filter = { job_names: options.job, kinds: options.kind, labels: options.label };
    // With a cursor that belongs to no log, the server begins with the oldest event that it keeps.
    const begin = options.cursor ?? (options.follow ? null : "oldest");
    const cursors = new Map<string, string | null>(names.map((name) => [name, begin]));
    for (;;) {
      let isBusy = false;
      for (const name of names) {
        const params = { name, arguments: filter, cursor: cursors.get(name) };
        const page = await request("events/poll", params, Page);
        if (page.truncated && params.cursor !== "oldest") printError(`Some ${name} events may be missing.`);
        for (const [i, event] of page.events.entries()) {
          // A page has only the cursor after its last event. The cursor of an earlier event repeats the page.
          const cursor = i === page.events.length - 1 ? page.cursor : params.cursor;
          print(JSON.stringify({ ...event, ...(cursor !== null && { cursor }) }));
        }
        cursors.set(name, page.cursor);
        isBusy ||= page.hasMore;
      }
      if (isBusy) continue;
      if (!options.follow) break;
      await sleep(POLL_PAUSE_MS);
    }
  } finally {
    await connection.close();
  }
}
