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

/** Hands each event to those of `features` that observe, in their order. Resolves when all have taken it. */
export function observedBy<Event>(
  features: readonly { observe?(event: Event): void | Promise<void> }[],
): (event: Event) => Promise<void> {
  return async (event) => {
    for (const feature of features) if (feature.observe) await feature.observe(event);
  };
}
