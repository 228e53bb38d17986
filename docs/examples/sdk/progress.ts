import type { Resonate } from "@resonatehq/sdk";

/** Writes the `n`th entry of a job's progress feed, counted from 1: how far the job is, or what it does. */
export async function progress(
  promises: Resonate["promises"],
  job: string,
  n: number,
  { message, ...progress }: { done: number; total?: number; message?: never } | { message: string },
): Promise<void> {
  const entry = message === undefined ? { progress, questions: {} } : { message, questions: {} };
  const id = `${job}:u${n}`;
  await promises.create(id, Date.now() - 1, {
    data: Buffer.from(JSON.stringify(entry)).toString("base64"),
    tags: {
      "resonate:origin": job,
      "resonate:parent": job,
      "resonate:branch": id,
      "resonate:scope": "global",
      "resonate:timer": "true",
    },
  });
}
