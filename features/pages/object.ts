/** What a page shows of its viewer's object. */
import type {
  EventFilter,
  ListenerView,
  ObjectPart,
  ObjectRecord,
  ScheduleView,
  SubscriptionView,
  ViewMethods,
} from "../../core/jobs/index.ts";

interface ViewOptions {
  record: Pick<ObjectRecord, "begin">;
  hooks: { list(): SubscriptionView[]; end(id: string): void };
  events: { listeners(): ListenerView[]; matches(filter: EventFilter, jobName: string): boolean };
  schedules: { list(): ScheduleView[] };
}

export function objectView({ record, hooks, events, schedules }: ViewOptions): ObjectPart {
  const methods: ViewMethods = {
    async view(key, job, end) {
      await record.begin(key);
      if (end !== undefined) hooks.end(end);
      const [subscriptions, listeners] = [hooks.list(), events.listeners()];
      if (job === undefined) return { subscriptions, listeners, schedules: schedules.list() };
      const isOfJob = ({ filter }: { filter: EventFilter }) => events.matches(filter, job);
      return { subscriptions: subscriptions.filter(isOfJob), listeners: listeners.filter(isOfJob), schedules: [] };
    },
  };
  return { name: "pages", methods: { ...methods } };
}
