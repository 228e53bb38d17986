import { type FC, useEffect, useState } from "hono/jsx/dom";
import { useAction } from "../lib/components.tsx";
import { type Action, type ActionState, act, type Filter, type Preview, preview } from "./requests.ts";

export const jobLink = (job: string) => `#job=${encodeURIComponent(job)}`;

/** A button that acts at once and shows the outcome. */
export const Act: FC<{ action: Action; words: string; onDone?(): void }> = ({ action, words, onDone }) => {
  const [outcome, setOutcome] = useState("");
  return (
    <>
      <button
        type="button"
        disabled={outcome === "…"}
        onClick={async () => {
          setOutcome("…");
          await act(action).then(
            ({ outcomes }) => setOutcome(Object.values(outcomes).join(", ") || "done"),
            (error) => setOutcome(error.message),
          );
          onDone?.();
        }}
      >
        {words}
      </button>
      {outcome !== "" && <span role="status"> {outcome}</span>}
    </>
  );
};

/** An action on many jobs. Shows their number and the jobs before the user acts. */
export const Bulk: FC<{ filter: Filter; onDone(): void }> = ({ filter, onDone }) => {
  const [matches, setMatches] = useState<Preview | undefined>(undefined);
  const [state, setState] = useState<ActionState | undefined>(undefined);
  const { attempt, problem } = useAction();
  useEffect(() => {
    void attempt(async () => setMatches(await preview(filter)));
  }, []);
  const run = async (action: Action) => {
    await attempt(async () => setState(await act(action, setState)));
    onDone();
  };
  if (problem) return problem;
  if (!matches) return <p class="muted">…</p>;
  const words = wordsFor(matches.count);
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
        matches.count > 0 && <BulkActions filter={filter} matches={matches} run={run} />
      )}
      <MatchTable matches={matches} />
    </section>
  );
};

const wordsFor = (count: number) => `${count} ${count === 1 ? "job" : "jobs"}`;

interface BulkActionProps {
  filter: Filter;
  matches: Preview;
  run(action: Action): void;
}

const BulkActions: FC<BulkActionProps> = ({ filter, matches, run }) => {
  const isFailed = (filter.state ?? "failed") === "failed";
  const target = { preview: matches.preview };
  const words = wordsFor(matches.targets);
  return (
    <p class="actions">
      {(isFailed || filter.state === "blocked") && (
        <button type="button" class="main" onClick={() => run({ do: "retry", ...target, from: "last" })}>
          Try {words} again
        </button>
      )}
      {isFailed && (
        <button type="button" onClick={() => run({ do: "retry", ...target, from: "start" })}>
          Try {words} again from the start
        </button>
      )}
      {!isFailed && (
        <button type="button" onClick={() => run({ do: "cancel", ...target })}>
          Cancel {words}
        </button>
      )}
      <span class="muted">
        {isFailed
          ? "Without “from the start”, each job continues from its last good step."
          : "Cancelled jobs run their clean-up."}
      </span>
    </p>
  );
};

const MatchTable: FC<{ matches: Preview }> = ({ matches: { jobs, count } }) => (
  <>
    <table class="jobs">
      <tbody>
        {jobs.map(({ job, state, says, at }) => (
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
    {count > jobs.length && <p class="muted">{count - jobs.length} more.</p>}
  </>
);
