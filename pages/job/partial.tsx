import type { FC } from "hono/jsx/dom";
import type { Latest } from "../../core/jobs/index.ts";
import { Tree } from "./tree.tsx";

/** The partial results of a running job, newest first. */
export const Partial: FC<{ partial: Latest }> = ({ partial: { count, values } }) => (
  <section class="partial" aria-labelledby="partial">
    <h2 id="partial">{count === 1 ? "A partial result" : `${count} partial results`}</h2>
    {count > values.length && <p class="quiet">The newest {values.length}:</p>}
    {values.map((value, i) => (
      <Tree key={count - i} value={value} />
    ))}
  </section>
);
