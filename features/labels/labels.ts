/** Labels: a caller's own words for its jobs, by which it finds them and subscribes to their events. */
import { NotStarted } from "../../core/author/index.ts";
import { oneForm } from "../../core/resonate/index.ts";

const MAX_LABELS = 8;

const LABEL_PATTERN = /^[^\p{Cc}\p{Cs}]{1,64}$/u;

/** The labels without repetitions. @throws {NotStarted} if `value` is not a list of labels */
export function labelsIn(value: unknown): readonly string[] {
  const isList = Array.isArray(value) && value.every((label) => typeof label === "string" && LABEL_PATTERN.test(label));
  const labels = isList ? [...new Set<string>(value.map(oneForm))] : [];
  if (isList && labels.length <= MAX_LABELS) return labels;
  throw new NotStarted(`its labels must be up to ${MAX_LABELS} texts of 1 to 64 characters`);
}
