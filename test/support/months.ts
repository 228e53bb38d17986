import { monthBounds } from "../../tools/weather/calendar.ts";
import type { SampleArchive } from "../../tools/weather/sample-archive/server.ts";

/** A place that the sample archive has. */
export const SEATTLE = { latitude: 47.6, longitude: -122.3 };

/** A month of the sample archive, with its name for each party. */
export interface Month {
  /** Arguments of the tools. */
  args: { latitude: number; longitude: number; year: number; month: number };
  /** The name of its job. */
  job: string;
  /** `YYYY-MM`, as the archive's controls name it. */
  archived: string;
  /** Its first day. */
  first: string;
}

/** Returns a function that gives another month at each call, so that tests can share an archive with its faults and its log. */
export function monthsOfItsOwn(): () => Month {
  let given = 0;
  return () => {
    const [year, month] = [2012 + Math.floor(given / 12), (given++ % 12) + 1];
    if (year > 2015) throw new Error("the sample archive has no further months");
    const { first } = monthBounds(year, month);
    const job = `weather_data_47.6_-122.3_${year}_${month}`;
    return { args: { ...SEATTLE, year, month }, job, archived: first.slice(0, 7), first };
  };
}

/** The body that the archive serves for the worker's request for a month. */
export async function servedBody({ url, control }: SampleArchive, { first }: Month): Promise<string> {
  const asked = control.requests.log.find(({ query }) => query.includes(`start_date=${first}`));
  if (!asked) throw new Error(`the archive got no request for ${first}`);
  return (await fetch(`${url}?${asked.query}`)).text();
}
