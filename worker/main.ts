import { JOBS } from "../functions/jobs/index.ts";
import { RemoteStore } from "../functions/resonate/store.ts";
import { durableFunctions } from "./functions/index.ts";
import { OpenMeteo } from "./open-meteo.ts";
import { runWorker } from "./run.ts";

await runWorker((config) => {
  const archive = new OpenMeteo({
    url: config.WEATHER_API_URL,
    timeout: config.UPSTREAM_TIMEOUT_SECONDS * 1000,
    concurrency: config.UPSTREAM_CONCURRENCY,
  });
  return durableFunctions(archive, new RemoteStore(config, JOBS));
});
