import { type FC, useEffect, useState } from "hono/jsx/dom";
import { useAction } from "../lib/components.tsx";
import { type Action, type ActionState, act, type Filter, type FoundJob, jobs as find } from "./ask.ts";

export const jobLink = (job: string) => `#job=${encodeURIComponent(job)}`;

/** A button that acts at once and shows the outcome. */
export const Act: FC<{ action: Action; words: string; onDone?(): void }> = ({ action, words, onDone }) => {
  const [said, setSaid] = useState("");
  return (
    <>
      <button
        type="button"
        disabled={said === "…"}
        onClick={async () => {
          setSaid("…");
          await act(action).then(
            ({ outcomes }) => setSaid(Object.values(outcomes).join(", ") || "done"),
            (error) => setSaid(error.message),
          );
          onDone?.();
        }}
      >
        {words}
      </button>
      {said !== "" && <span role="status"> {said}</span>}
    </>
  );
};

/** An action on many jobs. Shows their number and the jobs before the user acts. */
export const Bulk: FC<{ filter: Filter; onDone(): void }> = ({ filter, onDone }) => {
  const [found, setFound] = useState<{ jobs: FoundJob[]; count: number; at: number } | undefined>(undefined);
  const [state, setState] = useState<ActionState | undefined>(undefined);
  const { attempt, problem } = useAction();
  const isFailed = (filter.state ?? "failed") === "failed";
  useEffect(() => {
    const at = Date.now();
    void attempt(async () => setFound({ ...(await find({ ...filter, until: at })), at }));
  }, []);
  const run = async (action: Action) => {
    await attempt(async () => setState(await act(action, setState)));
    onDone();
  };
  if (problem) return problem;
  if (!found) return <p class="muted">…</p>;
  const those = { filter: { ...filter, until: found.at } };
  const words = `${found.count} ${found.count === 1 ? "job" : "jobs"}`;
  return (
    <section class="card" aria-label="The jobs">
      <h2>
        {words}
        {filter.kind !== undefined && ` of ${filter.kind}`}
        {filter.reason !== undefined && <span class="muted"> · {filter.reason}</span>}
      </h2>
      {state ? (
        <p role="status">
          {state.is_over ? `Done: ${state.done} of ${state.total}.` : `${state.done} of ${state.total} …`}{" "}
          {Object.values(state.outcomes)[0]}
        </p>
      ) : (
        found.count > 0 && (
          <p class="actions">
            {(isFailed || filter.state === "blocked") && (
              <button type="button" class="main" onClick={() => run({ do: "retry", ...those, from: "last" })}>
                Try {words} again
              </button>
            )}
            {isFailed && (
              <button type="button" onClick={() => run({ do: "retry", ...those, from: "start" })}>
                Try {words} again from the start
              </button>
            )}
            {!isFailed && (
              <button type="button" onClick={() => run({ do: "cancel", ...those })}>
                Cancel {words}
              </button>
            )}
            <span class="muted">
              {isFailed
                ? "Without “from the start”, each job continues from its last good step."
                : "Cancelled jobs run their clean-up."}
            </span>
          </p>
        )
      )}
      <table class="jobs">
        <tbody>
          {found.jobs.map(({ job, state, says, at }) => (
            <tr key={job}>
              <th scope="row">
                <a href={jobLink(job)}>{job}</a>
                <span class="doing muted">{says}</span>
              </th>
              <td>{state}</td>
              <td>{new Date(at).toLocaleString()}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {found.count > found.jobs.length && <p class="muted">{found.count - found.jobs.length} more.</p>}
    </section>
  );
};
