/** Notes for operators the calls by which callers end, answer and remove jobs. */
import type { EdgeFeature } from "../../core/feature.ts";
import { AUDITED_METHODS } from "./calls.ts";

/** `note` gets the caller's label, the tool or method, and its parameters. It must not reject. */
export const audit = (note: (caller: string, what: string, params: object) => Promise<void>): EdgeFeature => ({
  name: "audit",
  note(what, params, { caller, waitUntil }) {
    if (AUDITED_METHODS.includes(what)) waitUntil(note(caller.label, what, params));
  },
});
