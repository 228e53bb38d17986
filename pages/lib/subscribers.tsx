/** Shows who is notified of the viewer's jobs, or of one job, and the outcome of the last delivery; subscriptions can be ended. */
import { type FC, useState } from "hono/jsx/dom";
import type { ListenerView, ObjectView, SubscriptionView } from "../../core/jobs/index.ts";
import { Section, Time, useAction, usePolling } from "./components.tsx";
import { endSubscription, subscribersOf } from "./server.ts";

/** How often the subscriptions are read while the page is visible. */
const POLL_INTERVAL_MS = 15_000;

/** The viewer's subscriptions and schedules; empty until they are read. */
export function useSubscribers(job?: string) {
  const [subscribers, setSubscribers] = useState<Partial<ObjectView>>({});
  const [reads, setReads] = useState(0);
  // After a failed read the last state stays. The list of jobs shows the reason.
  const read = async (end: AbortSignal) => {
    const answer = await subscribersOf(job).catch(() => undefined);
    if (answer && !end.aborted) setSubscribers(answer);
  };
  usePolling(read, POLL_INTERVAL_MS, [job, reads]);
  return { ...subscribers, refresh: () => setReads(reads + 1) };
}

interface SubscriberProps {
  title: string;
  subscriptions?: SubscriptionView[] | undefined;
  listeners?: ListenerView[] | undefined;
  onEnd(): void;
}

/** Renders nothing if nobody is notified. */
export const Subscribers: FC<SubscriberProps> = ({ title, subscriptions = [], listeners = [], onEnd }) => {
  const { attempt, problem } = useAction();
  if (subscriptions.length + listeners.length === 0) return null;
  const end = async ({ id, host }: SubscriptionView) => {
    if (!confirm(`End this subscription? ${host} is notified that it is over.`)) return;
    await attempt(() => endSubscription(id));
    onEnd();
  };
  return (
    <Section id="subscribers" title={title}>
      {problem}
      <ul class="entries">
        {subscriptions.map((each) => (
          <li key={each.id}>
            <div>
              <strong>{each.host}</strong> <span class="muted">{filterOf(each)}</span>
              <Delivery status={each.status} />
            </div>
            <button
              type="button"
              class="danger"
              aria-label={`End the subscription of ${each.host}`}
              onClick={() => end(each)}
            >
              End
            </button>
          </li>
        ))}
        {listeners.map((each) => (
          <li key={filterOf(each)}>
            <div>
              <strong>A client that listens</strong> <span class="muted">{filterOf(each)}</span>
            </div>
          </li>
        ))}
      </ul>
    </Section>
  );
};

const Delivery: FC<{ status: SubscriptionView["status"] }> = ({ status }) => {
  const { active, lastDeliveryAt, lastError, failedSince } = status;
  return (
    <span class="doing muted">
      {lastDeliveryAt === null ? "Nothing delivered yet" : "Last delivery "}
      {lastDeliveryAt !== null && <Time at={lastDeliveryAt} />}
      {lastError !== null && ` · the last attempt failed: ${lastError}`}
      {failedSince != null && " · failing since "}
      {failedSince != null && <Time at={failedSince} />}
      {!active && " · suspended until its client renews it"}
    </span>
  );
};

function filterOf({ name, filter }: ListenerView): string {
  const { jobNames, kinds, labels, schedule } = filter;
  const parts = [
    jobNames && `jobs ${jobNames.join(", ")}`,
    kinds && `kinds ${kinds.join(", ")}`,
    labels && `labels ${labels.join(", ")}`,
    schedule !== undefined && `schedule ${schedule}`,
  ];
  return [name, ...parts.filter(Boolean)].join(" · ");
}
