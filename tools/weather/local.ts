/** A local archive for runs without internet access. */
import type { LocalService } from "../../core/index.ts";

const OPEN_METEO_URL = "https://archive-api.open-meteo.com/v1/archive";
/** How long the archive may take to answer. */
const CHECK_TIMEOUT_MS = 3_000;

export const sampleArchive: LocalService = {
  name: "the sample archive",
  option: {
    name: "sample-weather",
    description: "serve bundled weather (Seattle, 2012 to 2015) instead of asking Open-Meteo",
  },
  main: new URL("./sample-archive/archive-process.ts", import.meta.url),
  env: (origin) => ({ WEATHER_API_URL: `${origin}/v1/archive` }),
  banner: "bundled weather: Seattle (47.6062, -122.3321), 2012 to 2015",
  async check({ WEATHER_API_URL }) {
    const url = WEATHER_API_URL || OPEN_METEO_URL;
    const isReachable = await fetch(url, { signal: AbortSignal.timeout(CHECK_TIMEOUT_MS) }).then(
      () => true,
      () => false,
    );
    if (isReachable) return [];
    return [
      `${new URL(url).host} cannot be reached: gatherings will be retried and then fail. Timers work.`,
      "To try gatherings without it, start with bundled weather: --sample-weather.",
    ];
  },
};
