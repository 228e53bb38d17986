import { implement } from "../../../core/index.ts";
import { call, Services } from "../services.ts";
import { trip } from "./trip.ts";

/** A saga: bookings are undone when a later booking fails, the job is cancelled, or its deadline comes. */
export const tripRun = implement(
  trip,
  async (ctx, { city, day }) => {
    const reference = ctx.uuid(); // new each time the job is started again, the same in each replay
    let booked = 0;
    const book = async (what: string) => {
      // Comes first: a booking that fails or is interrupted may have been made nevertheless.
      ctx.onUndo(what, (step) => call(step, `/${what}/cancellations`, { reference }));
      const { number } = await ctx.step(`book ${what}`, (step) =>
        call<{ number: string }>(step, `/${what}/bookings`, { reference, city, day }),
      );
      booked += 1;
      ctx.progress(booked, 3, `${what} booked`);
      return number;
    };
    return { flight: await book("flight"), hotel: await book("hotel"), car: await book("car") };
  },
  { env: Services },
);
