import * as z from "zod";
import {
  CONFIRM_ABOVE,
  FIRST_YEAR,
  isoDate,
  MAX_MONTHS,
  monthAvailability,
  monthIndex,
  range,
  type WeatherRange,
  YearMonth,
} from "../jobs/index.ts";
import type { DurablePromise, RemoteStore } from "../resonate/store.ts";
import { startJob } from "../start.ts";
import { lenientBoolean } from "./arguments.ts";
import { defineJobTool } from "./job-tool.ts";
import { ToolError } from "./tool.ts";
import { placeInput } from "./weather.ts";

const yearMonth = YearMonth.refine((month) => month >= `${FIRST_YEAR}`, `the archive begins in ${FIRST_YEAR}`);

export const weatherRange = defineJobTool({
  name: "weather_range",
  title: "Weather of a span of months",
  description:
    "Gather historical daily weather for a span of months at a place, one request a month; months gathered before are " +
    `not fetched again. A span of more than ${CONFIRM_ABOVE} months is confirmed first: ask the user, then pass ` +
    "confirm: true. A long job answers with its job_name, to collect with await_result.",
  input: z.object({
    latitude: placeInput.latitude,
    longitude: placeInput.longitude,
    from: yearMonth.describe("The first month, YYYY-MM, from 1940-01."),
    to: yearMonth.describe("The last month, YYYY-MM, up to the present one."),
    timezone: placeInput.timezone,
    confirm: lenientBoolean().describe(
      `true when the user agreed to a span of more than ${CONFIRM_ABOVE} months; leave out otherwise.`,
    ),
  }),
  annotations: { idempotentHint: true, readOnlyHint: false, destructiveHint: false, openWorldHint: true },
  async start({ latitude, longitude, from, to, timezone, confirm = false }, { store, now, tasks, signal }) {
    const months = monthIndex(to) - monthIndex(from) + 1;
    if (months < 1) throw new ToolError(`to: ${to} is before ${from}. Accepted: a month not before \`from\`.`);
    if (months > MAX_MONTHS) {
      throw new ToolError(`to: ${from} to ${to} are ${months} months. Accepted: up to ${MAX_MONTHS} months at a time.`);
    }
    const last = monthAvailability(Number(to.slice(0, 4)), Number(to.slice(5)), now);
    if (last === "none") {
      throw new ToolError(
        `to: ${to} has not begun. Accepted: a month up to the present one, ${isoDate(now).slice(0, 7)}.`,
      );
    }
    if (months > CONFIRM_ABOVE && !confirm && !tasks) {
      throw new ToolError(
        `Nothing was started: ${from} to ${to} takes ${months} requests. Ask the user, then call again with confirm: true.`,
      );
    }
    const args: WeatherRange = {
      latitude: latitude + 0,
      longitude: longitude + 0,
      from,
      to,
      ...(timezone !== undefined && { timezone }),
      ...(last === "part" && { requested_on: isoDate(now) }),
      confirmed: confirm,
    };
    const promise = await startJob(store, range, args, now);
    if (confirm) await confirmOpenQuestions(store, promise, signal);
    return promise;
  },
});

/** How long a job that has just been started may take to ask, in milliseconds. */
const TIME_TO_ASK = 5_000;

/**
 * A job that was started unconfirmed waits for an answer; a confirmed call of the same job gives it.
 *
 * @throws {ToolError} when the job has not come as far as asking
 */
async function confirmOpenQuestions(store: RemoteStore, promise: DurablePromise, signal: AbortSignal): Promise<void> {
  if (promise.state !== "pending" || (promise.args as WeatherRange).confirmed) return;
  for (const start = Date.now(); Date.now() - start < TIME_TO_ASK; ) {
    const { entry } = await store.journals.newestEntry(promise.name, signal);
    if (entry) {
      const questions = Object.values(entry.questions);
      const confirm = { action: "accept", content: { confirm: true } } as const;
      await Promise.all(questions.map(({ promiseId }) => store.journals.answer(promiseId, confirm)));
      return;
    }
    await new Promise((resolve) => setTimeout(resolve, 250));
  }
  throw new ToolError(
    `${promise.name} was started without being confirmed, and has not asked for it yet. Repeat the same call.`,
  );
}
