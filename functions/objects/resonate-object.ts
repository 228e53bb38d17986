import { resonateObject } from "./load.ts";

/** The Resonate server of this deployment. */
export const ResonateObject = resonateObject(() => import("../modules/resonate.js"));
