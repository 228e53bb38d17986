import { sleepUntilDue } from "../../../tools/timer/timer.run.ts";
import { runWorker } from "../../../worker/index.ts";

await runWorker({ functions: [sleepUntilDue] });
