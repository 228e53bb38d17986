/** The components and hooks that pages share. */
import { type Child, type FC, useEffect, useState } from "hono/jsx/dom";
import { type About, about as askAbout, hasSignedIn, Refusal, type Status, signOut } from "./server.ts";

/** The public description of the deployment; undefined until it has been read. */
export function useAbout(): About | undefined {
  const [about, setAbout] = useState<About | undefined>(undefined);
  usePolling(() => about ?? askAbout().then(setAbout, () => {}), 5_000, [about]);
  return about;
}

/**
 * Calls `poll` at once and then every `ms` milliseconds while the page is visible. A call never starts before the last has
 * ended. `end` aborts when the component is removed or `dependencies` change.
 */
export function usePolling(poll: (end: AbortSignal) => unknown, ms: number, dependencies: unknown[] = []): void {
  useEffect(() => {
    const end = new AbortController();
    let isBusy = false;
    const tick = async () => {
      if (document.visibilityState !== "visible" || isBusy) return;
      isBusy = true;
      await poll(end.signal);
      isBusy = false;
    };
    void tick();
    const ticker = setInterval(tick, ms);
    document.addEventListener("visibilitychange", tick, { signal: end.signal });
    return () => {
      end.abort();
      clearInterval(ticker);
    };
  }, dependencies);
}

/** The outcome of repeated reads: whether the connection is lost, and the server's refusal. */
export function useOutcome() {
  const [isLost, setLost] = useState(false);
  const [refusal, setRefusal] = useState<Refusal | undefined>(undefined);
  return {
    isLost,
    refusal,
    onSuccess() {
      setLost(false);
      setRefusal(undefined);
    },
    /** Returns whether the server would refuse another read as well. */
    onFailure(error: unknown): boolean {
      const isFinal = error instanceof Refusal && error.status !== 429 && error.status < 500;
      if (isFinal) setRefusal(error);
      else setLost(true);
      return isFinal;
    },
  };
}

type Outcome = Pick<ReturnType<typeof useOutcome>, "isLost" | "refusal">;

/** Polls by `read`, which may reject. */
export function useReads(read: (end: AbortSignal) => Promise<void>, ms: number, dependencies: unknown[]): Outcome {
  const { onSuccess, onFailure, ...outcome } = useOutcome();
  const poll = async (end: AbortSignal) => {
    try {
      await read(end);
      if (!end.aborted) onSuccess();
    } catch (error) {
      if (!end.aborted) onFailure(error);
    }
  };
  usePolling(poll, ms, dependencies);
  return outcome;
}

/** Shows why the page has nothing new; to viewers who are not signed in its children. */
export const Trouble: FC<{ reads: Outcome; children?: Child }> = ({ reads: { isLost, refusal }, children }) => (
  <>
    {isLost && <Notice kind="lost">Connection lost. Trying again …</Notice>}
    {refusal && (refusal.status === 401 ? children : <Notice kind="error">{refusal.message}</Notice>)}
  </>
);

/** Runs actions of the viewer. `problem` shows why the last one failed. */
export function useAction() {
  const [problem, setProblem] = useState("");
  const [isBusy, setBusy] = useState(false);
  const attempt = async (action: () => Promise<unknown>) => {
    setBusy(true);
    setProblem("");
    await action().catch((error) => setProblem(error.message));
    setBusy(false);
  };
  return { attempt, isBusy, problem: problem !== "" && <Notice kind="error">{problem}</Notice> };
}

/** The time in milliseconds since the epoch, updated each second while the page is visible. */
export function useNow(): number {
  const [now, setNow] = useState(Date.now());
  usePolling(() => setNow(Date.now()), 1_000);
  return now;
}

/** A part of a page under the heading that names it. */
export const Section: FC<{ id: string; title: string; children?: Child }> = ({ id, title, children }) => (
  <section aria-labelledby={id}>
    <h2 id={id}>{title}</h2>
    {children}
  </section>
);

export const Table: FC<{ heads: readonly Child[]; class?: string; children?: Child }> = (props) => (
  <table class={props.class}>
    <thead>
      <tr>
        {props.heads.map((head, i) => (
          <th scope="col" key={i}>
            {head}
          </th>
        ))}
      </tr>
    </thead>
    <tbody>{props.children}</tbody>
  </table>
);

/** An entry of a list of facts, `dl.facts`. */
export const Fact: FC<{ name: string; isLive?: boolean; children?: Child }> = ({ name, isLive, children }) => (
  <div>
    <dt>{name}</dt>
    <dd aria-live={isLive ? "polite" : undefined}>{children}</dd>
  </div>
);

/** A frame for wide content, which can also be scrolled by keyboard. */
export const Scroll: FC<{ label: string; children?: Child }> = ({ label, children }) => (
  // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- scrolling must be possible by keyboard
  <section class="scroll" tabIndex={0} aria-label={label}>
    {children}
  </section>
);

const isAt = (path: string) => (location.pathname === path ? "page" : undefined);

export const Page: FC<{ about: About | undefined; children?: Child }> = (props) => (
  <>
    <a class="skip" href="#main">
      Skip to the content
    </a>
    <header>
      <a class="brand" href="/" aria-current={isAt("/")}>
        <img src="/assets/icon.svg" width="28" height="28" alt="" />
        {props.about?.title ?? "…"}
      </a>
      <nav aria-label="Pages">
        <a href="/jobs" aria-current={isAt("/jobs")}>
          Jobs
        </a>
        {props.about?.sign_in && hasSignedIn() && (
          <button
            type="button"
            class="quiet"
            onClick={async () => {
              await signOut();
              location.assign("/");
            }}
          >
            Sign out
          </button>
        )}
      </nav>
    </header>
    <main id="main" tabIndex={-1}>
      {props.children}
    </main>
  </>
);

export const StatusChip: FC<{ status: Status; asks?: boolean }> = ({ status, asks }) => (
  <span class={`chip ${asks ? "asks" : status}`}>{asks ? "asks you" : status.replace("_", " ")}</span>
);

/** The time at a path in a value, in milliseconds since the epoch; undefined if there is none. */
export function dateIn(value: unknown, path: string): number | undefined {
  const target = path
    .split(".")
    .reduce<unknown>((at, key) => (at as Record<string, unknown> | null | undefined)?.[key], value);
  const time = typeof target === "string" ? Date.parse(target) : Number.NaN;
  return Number.isNaN(time) ? undefined : time;
}

/** A moment in the viewer's time zone. */
export const Time: FC<{ at: string | number }> = ({ at }) => {
  const date = new Date(at);
  if (Number.isNaN(date.getTime())) return <span>{String(at)}</span>;
  const isToday = date.toDateString() === new Date().toDateString();
  const text = date.toLocaleString(undefined, { ...(!isToday && { dateStyle: "medium" }), timeStyle: "medium" });
  return (
    <time dateTime={date.toISOString()} title={date.toISOString()}>
      {text}
    </time>
  );
};

/** A duration in its two largest units, such as `3 min 5 s`. */
export function lengthOf(ms: number): string {
  if (ms > 0 && ms < 1_000) return `${(ms / 1_000).toFixed(1)} s`;
  const seconds = Math.max(0, Math.round(ms / 1_000));
  const parts: [number, string][] = [
    [Math.floor(seconds / 86_400), "d"],
    [Math.floor(seconds / 3_600) % 24, "h"],
    [Math.floor(seconds / 60) % 60, "min"],
    [seconds % 60, "s"],
  ];
  const first = parts.findIndex(([count]) => count > 0);
  if (first === -1) return "0 s";
  return parts
    .slice(first, first + 2)
    .filter(([count]) => count > 0)
    .map(([count, unit]) => `${count} ${unit}`)
    .join(" ");
}

export const megabytes = (bytes: number): string =>
  `${(bytes / 1e6).toLocaleString(undefined, { maximumFractionDigits: 1 })} MB`;

/** The health of a part of the deployment. */
export const Part: FC<{ name: string; isKnown: boolean; isWell: boolean; text: string; children?: Child }> = (
  props,
) => (
  <li>
    <span class={`dot ${!props.isKnown ? "" : props.isWell ? "well" : "ill"}`} aria-hidden="true" />
    {props.name}: {props.isKnown ? props.text : "…"}
    {props.children}
  </li>
);

export const Copy: FC<{ text: string; what: string }> = ({ text, what }) => {
  const [isCopied, setCopied] = useState(false);
  // Browsers let only secure pages copy.
  if (!("clipboard" in navigator)) return null;
  return (
    <button
      type="button"
      class="quiet"
      aria-label={`Copy ${what}`}
      onClick={async () => {
        await navigator.clipboard.writeText(text);
        setCopied(true);
        setTimeout(() => setCopied(false), 2_000);
      }}
    >
      {isCopied ? "Copied" : "Copy"}
    </button>
  );
};

/** A message that screen readers read out at once. */
export const Notice: FC<{ kind: "lost" | "error"; children?: Child }> = ({ kind, children }) => (
  <p class={`notice ${kind}`} role={kind === "error" ? "alert" : "status"}>
    {children}
  </p>
);

export const jobPath = (name: string) => `/jobs/${encodeURIComponent(name)}`;
