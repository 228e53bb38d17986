import { runWrapped } from "../../wrap/worker/index.ts";
import { acme } from "./acme.ts";

export const acmeRuns = runWrapped(acme, { snapshot: new URL("./acme.snapshot.ts", import.meta.url) });
