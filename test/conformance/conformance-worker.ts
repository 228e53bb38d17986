/** The product's worker, with the fixture functions added to its own. */
import { runs } from "../../tools/runs.ts";
import { runWorker } from "../../worker/worker.ts";
import { fixtureFunctions } from "./functions.ts";

await runWorker({ functions: [...runs, ...fixtureFunctions] });
