import { durableFunctions } from "./functions/index.ts";
import { OpenMeteo } from "./open-meteo.ts";
import { runWorker } from "./run.ts";

await runWorker((config) =>
  durableFunctions(
    new OpenMeteo({
      url: config.WEATHER_API_URL,
      timeout: config.UPSTREAM_TIMEOUT_SECONDS * 1000,
      concurrency: config.UPSTREAM_CONCURRENCY,
    }),
  ),
);
