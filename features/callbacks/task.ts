/** Gives functions the addresses of their callbacks. */
import type { WorkerFeature } from "../../core/feature.ts";
import type { CallbackUrl } from "./callback-urls.ts";

export const callbacks = (callbackUrl: CallbackUrl): WorkerFeature => ({
  name: "callbacks",
  run(run, next) {
    run.runtime.callbackUrl = (id) => callbackUrl(id, run.call.seed, run.promise.timeoutAt);
    return next();
  },
});
