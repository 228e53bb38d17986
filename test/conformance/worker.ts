/** The product's worker, with the fixture jobs besides its own. */
import { runs } from "../../tools/runs.ts";
import { runWorker } from "../../worker/run.ts";
import { fixtureFunctions } from "./functions.ts";

await runWorker({ tools: [...runs, ...fixtureFunctions] });
