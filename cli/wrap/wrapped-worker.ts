/** The worker that `wrap` runs: it makes the calls to the server whose files are in the folder `WRAP_FOLDER`. */
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { runWorker } from "../../worker/index.ts";
import { wrapServer } from "../../wrap/index.ts";
import { runWrapped } from "../../wrap/worker/index.ts";
import { FILES } from "./wrap-project.ts";

const folder = resolve(process.env.WRAP_FOLDER ?? "");
const options = JSON.parse(readFileSync(resolve(folder, FILES.options), "utf8"));
const snapshot = pathToFileURL(resolve(folder, FILES.snapshot));

await runWorker({ functions: runWrapped(wrapServer(options), { snapshot }) });
