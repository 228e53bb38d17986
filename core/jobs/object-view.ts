/** What a caller's object shows its caller: who receives events of its jobs, and what is scheduled. */
import type { EventFilter } from "./job-events.ts";

/** A subscription by web hook. Only the host of the receiver's address is shown. Times are ISO 8601. */
export interface SubscriptionView {
  id: string;
  /** The type of events. */
  name: string;
  filter: EventFilter;
  host: string;
  /** When it ends unless its client renews it. */
  until: string;
  /** The `deliveryStatus` of the extension. */
  status: { active: boolean; lastDeliveryAt: string | null; lastError: string | null; failedSince?: string | null };
}

/** Events that a client polls or streams. */
export type ListenerView = Pick<SubscriptionView, "name" | "filter">;

export interface ScheduleView {
  job_name: string;
  /** ISO 8601; undefined while it is not known. */
  next_at: string | undefined;
  /** The last firings, newest first. `text`: the name of the started job, or why none was started. */
  last: { text: string; isJob: boolean }[];
  /** Whether it is part of a tool's definition, which would make it again. */
  isOfDefinition: boolean;
}

export interface ObjectView {
  subscriptions: SubscriptionView[];
  listeners: ListenerView[];
  /** A bounded number, the next to fire first; empty if the call names one job. */
  schedules: ScheduleView[];
}

/** The remote method of a caller's object that shows it. */
export interface ViewMethods {
  /** Of all jobs of the caller with this key, or of one `job`. First ends the subscription `end`. */
  view(key: string, job?: string, end?: string): Promise<ObjectView>;
}
