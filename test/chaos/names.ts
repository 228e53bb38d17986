/** The names of jobs, made without the product's code: if the product changed a name, it would be another job. */
import type { Month, Range } from "./plan.ts";

export function monthName({ latitude, longitude, year, month, timezone }: Month): string {
  const zone = timezone === undefined ? "" : `_${timezone}`;
  return `weather_data_${latitude}_${longitude}_${year}_${month}${zone}`;
}

export const rangeName = ({ latitude, longitude, from, to }: Range): string =>
  `weather_range_${latitude}_${longitude}_${from}_${to}`;

export const timerName = ({ timer_name }: { timer_name: string }): string => `timer_${timer_name}`;
