import * as z from "zod";
import { defineDurableTool, HOUR, MINUTE } from "../../../core/index.ts";

export const trip = defineDurableTool({
  name: "book_trip",
  title: "Book a trip",
  description: "Books a flight, a hotel and a car, or nothing at all.",
  input: z.object({
    city: z.string().min(1).max(60).describe("Where to, such as Athens."),
    day: z.iso.date().describe("The day of arrival, such as 2027-05-01."),
  }),
  output: z.object({ flight: z.string(), hotel: z.string(), car: z.string() }),
  id: ({ city, day }) => `${city}_${day}`,
  deadline: HOUR,
  cleanup: { for: 10 * MINUTE }, // the time to undo the bookings
});
