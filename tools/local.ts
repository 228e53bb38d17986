/** Local substitutes for external services, each behind an option of `npm start`. */
import type { LocalService } from "../core/index.ts";
import { sampleArchive } from "./weather/local.ts";

export default [sampleArchive] satisfies readonly LocalService[];
