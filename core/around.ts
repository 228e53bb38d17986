/** How features take part in what the spine does: they are put around its work, and observe its events. */

/** Work around which a feature is put: it runs before and after `next`, in place of it, or not at all. */
export type Around<Subject, Result> = (subject: Subject, next: () => Promise<Result>) => Promise<Result>;

/** Puts the features' layers around `work`; the first is outermost, and one that is undefined is left out. */
export function around<Subject, Result>(
  layers: readonly (Around<Subject, Result> | undefined)[],
  work: (subject: Subject) => Promise<Result>,
): (subject: Subject) => Promise<Result> {
  return layers.reduceRight<(subject: Subject) => Promise<Result>>(
    (next, layer) => (layer ? (subject) => layer(subject, () => next(subject)) : next),
    work,
  );
}

/** What takes part in events of the spine. */
export interface Observer<Event extends { type: string }> {
  /** The types of the events that it observes. Default: all. */
  readonly observes?: readonly Event["type"][];
  observe?(event: Event): void | Promise<void>;
}

/** Hands each event to those of `features` that observe it, in their order. Resolves when all have taken it. */
export function observedBy<Event extends { type: string }>(
  features: readonly Observer<Event>[],
): (event: Event) => Promise<void> {
  const byType = new Map<string, readonly Observer<Event>[]>();
  return async (event) => {
    const { type } = event;
    const observers = byType.get(type) ?? features.filter(({ observes = [type] }) => observes.includes(type));
    byType.set(type, observers);
    for (const observer of observers) if (observer.observe) await observer.observe(event);
  };
}
