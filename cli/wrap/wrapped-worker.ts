/** The worker that `wrap` runs. It calls the server whose files are in the folder `WRAP_FOLDER`. */
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { logOf } from "../../core/jobs/index.ts";
import { runWorker } from "../../worker/index.ts";
import { collectGarbage } from "../../worker/process/collect-garbage.ts";
import { lineLog } from "../../worker/runner/log.ts";
import { wrapServer } from "../../wrap/index.ts";
import { implementationsOf } from "../../wrap/worker/implementations.ts";
import { serveCallsOf } from "./serve-calls.ts";
import { FILES } from "./wrap-files.ts";

const folder = resolve(process.env.WRAP_FOLDER ?? "");
const options = JSON.parse(readFileSync(resolve(folder, FILES.options), "utf8"));
const snapshot = pathToFileURL(resolve(folder, FILES.snapshot));

const connect = logOf(lineLog(process.env.LOG_LEVEL || "info"));
// This takes over the program that `wrap` has started.
const wrapped = wrapServer(options);
const { functions, server } = implementationsOf(wrapped, { snapshot, connect });
serveCallsOf(wrapped, server, process.env, connect);
await runWorker({ functions });
collectGarbage();
