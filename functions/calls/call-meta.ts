/** What a request says about a call besides its method and parameters. */
import { type CallRequest, LABELS_META, OWN_KEY_PATTERN } from "../../core/tools/index.ts";

/** What a request's `_meta` says about a call. */
export function callMetaIn({
  progressToken,
  idempotencyKey,
  [LABELS_META]: labels,
  ...others
}: Record<string, unknown>): Pick<CallRequest, "labels" | "meta" | "idempotencyKey"> {
  const meta = Object.entries(others).filter(([key]) => !OWN_KEY_PATTERN.test(key));
  return {
    ...(labels !== undefined && { labels }),
    ...(meta.length > 0 && { meta: Object.fromEntries(meta) }),
    ...(typeof idempotencyKey === "string" && idempotencyKey !== "" && { idempotencyKey }),
  };
}

/** The least increase from one progress report to the next. */
const MIN_INCREASE = 0.001;

/** Reports the progress of a call under its caller's token. Each report is greater than the previous one. */
export function reporting(
  token: string | number | undefined,
  notify: NonNullable<CallRequest["notify"]>,
): Pick<CallRequest, "reportProgress"> {
  if (token === undefined) return {};
  let last = -MIN_INCREASE;
  return {
    reportProgress(progress, total, message) {
      last = Math.max(progress, last + MIN_INCREASE);
      notify("notifications/progress", { progressToken: token, progress: last, total, message });
    },
  };
}
