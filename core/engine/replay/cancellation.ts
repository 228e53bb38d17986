/**
 * How a function hears that its job was cancelled, or that its deadline has come. Earlier outcomes reach the function
 * first. A cancellation ends the job's task, and another worker may run the clean-up: the worker whose steps are under way
 * leaves their outcomes in promises of their own ({@link Lease.leave}), which the clean-up waits for.
 */
import { SECOND } from "../../author/context.ts";
import { decodeStrictly } from "../../resonate/codec.ts";
import type { PromiseRecord } from "../../resonate/connection/protocol.ts";
import type { Clock, Wakeup } from "../clock.ts";
import { lateOutcomeOf } from "../guard/seeded.ts";
import type { Lease } from "../job-lease.ts";
import type { JournalWriter } from "../journal-writer.ts";
import type { Journal, JournalEntry, JournalRecord } from "../journal.ts";
import type { Runtime } from "../runtime.ts";
import type { Awaitables } from "./commands/awaitables.ts";
import { type Command, type Commands, hasEffects } from "./commands/commands.ts";
import type { FunctionPass } from "./function-pass.ts";
import type { Replay } from "./replay.ts";

/** How long steps under way may take to end, in milliseconds; at most a quarter of the clean-up's time. */
const MAX_UNWINDING_MS = 5 * SECOND;

export const unwindingTimeOf = (cleanup: number): number => Math.min(MAX_UNWINDING_MS, cleanup / 4);

interface CancellationParts {
  readonly pass: FunctionPass;
  readonly journal: Journal;
  readonly commands: Commands;
  readonly awaitables: Awaitables;
  readonly writer: JournalWriter;
  readonly replay: Replay;
  readonly lease: Lease;
  readonly wakeup: Wakeup;
  readonly clock: Clock;
  readonly runtime: Runtime;
}

/** A cancellation, or (`by`) the deadline, at the time `at` in milliseconds since the epoch. */
interface Cancellation {
  at: number;
  by?: "deadline" | undefined;
  /** Why the job cannot end before its deadline, if the function hears of that early. */
  reason?: string | undefined;
  /** The commands that were open after the replay: an earlier worker may have begun them. */
  openBefore: ReadonlySet<Command>;
  /** Whether the function would end if it were handed this outcome next, and never hear of the cancellation. */
  endsWith(outcome: JournalEntry): Promise<boolean>;
}

/**
 * Tells the function, unless a record shows that it knows. Once the function has broken a rule, nothing more is handed over:
 * a later record would look as if its code had changed. @throws {LeaseLost}
 */
export async function interrupt(parts: CancellationParts, cancellation: Cancellation): Promise<void> {
  const { pass, journal, commands, writer, replay } = parts;
  const { at, by, reason, openBefore } = cancellation;
  if (journal.events.some(({ event }) => event.kind === "cancelled")) return;
  const openWork = () => [...commands.open].filter(hasEffects);
  const waiting = new Set(openWork().filter((command) => command.runningSince === 0 && !openBefore.has(command)));
  await deliverSettled(parts, at);
  // An earlier worker may have handed over the same outcomes, and begun the commands that they opened.
  const begunCommands = new Set(openWork().filter((command) => !waiting.has(command)));
  const late = by ? NO_LATE_OUTCOMES : await deliverLateOutcomes(parts, cancellation, begunCommands);
  if (late.hasDelivered) await deliverSettled(parts, at);
  if (pass.brokenRule) return;
  const paths = openWork().flatMap((command) => (begunCommands.has(command) ? [] : command.path));
  const unbegun = paths.length > 0 ? paths : undefined;
  await replay.interrupt(await writer.record({ kind: "cancelled", op: "", by, reason, unbegun }));
  for (const [command, outcome] of late.ofCleanUps)
    if (!command.isOver && !pass.brokenRule) await replay.deliver(command, await writer.record(outcome));
}

/** Outcomes of steps that were under way when the job was cancelled. */
interface LateOutcomes {
  /** Whether any was handed over. */
  hasDelivered: boolean;
  /** Those of the steps of a clean-up: the function hears of the cancellation first, and then continues from them. */
  ofCleanUps: [Command, JournalEntry][];
}

const NO_LATE_OUTCOMES: LateOutcomes = { hasDelivered: false, ofCleanUps: [] };

/**
 * Hands over the winners of decided races. No call waits in such a race any more, so the function could not hear of the
 * cancellation there.
 */
export async function deliverWinners(
  { pass, commands, replay }: Pick<CancellationParts, "pass" | "commands" | "replay">,
  record: (event: JournalEntry) => Promise<JournalRecord>,
): Promise<void> {
  for (;;) {
    const race = [...commands.open].find(({ kind, winner }) => kind === "race" && winner);
    if (pass.brokenRule || !race?.winner) return;
    const { key, failed } = race.winner;
    await replay.deliver(race, await record({ kind: "race", op: race.path, winner: key, ...(failed && { failed }) }));
  }
}

/** Hands over the awaited outcomes that had settled by `at`: they may have reached the function before its worker died. */
async function deliverSettled(parts: CancellationParts, at: number): Promise<void> {
  const { pass, commands, awaitables, writer, replay } = parts;
  for (;;) {
    await deliverWinners(parts, (event) => writer.record(event));
    for (const command of commands.open) awaitables.locate(command);
    await awaitables.readDue();
    const { next } = awaitables;
    const settled = next?.awaitedPromise?.settlement;
    if (pass.brokenRule || !next || !settled) return;
    const { settledAt = 0, state } = settled;
    // The clean-up has cancelled the job's children before, perhaps in the millisecond of the cancellation.
    if (settledAt > at || (settledAt === at && state === "rejected_canceled")) return;
    writer.addReachedPath(next.path);
    await replay.deliverAwaited(next, settled);
  }
}

/** Waits a short while for outcomes of steps that were under way, and hands them over. */
async function deliverLateOutcomes(
  parts: CancellationParts,
  { at, endsWith }: Cancellation,
  begunCommands: ReadonlySet<Command>,
): Promise<LateOutcomes> {
  const { pass, writer, replay, lease, wakeup, clock, runtime } = parts;
  const end = clock.now() + unwindingTimeOf(runtime.deadline - clock.now());
  const openCommands = new Map<string, Command>();
  for (const command of begunCommands) {
    if (command.isOver || (command.pause && command.pause.due > at)) continue;
    const id = lateOutcomeOf(lease.run, command.path);
    await lease.create(id, undefined, { until: Math.ceil(end) });
    openCommands.set(id, command);
  }
  const late: LateOutcomes = { hasDelivered: false, ofCleanUps: [] };
  for (;;) {
    wakeup.reset();
    const isLast = clock.now() >= end;
    for (const [id, command] of openCommands) {
      const promise = await lease.watch(id, isLast);
      if (!promise || (promise.state === "pending" && !isLast)) continue;
      openCommands.delete(id);
      if (pass.brokenRule) return late;
      const event = entryIn(promise);
      if (!event || command.isOver) continue;
      if (command.isShielded) late.ofCleanUps.push([command, event]);
      if (command.isShielded || (await endsWith(event))) continue;
      await replay.deliver(command, await writer.record(event));
      late.hasDelivered = true;
    }
    if (openCommands.size === 0 || isLast) return late;
    await wakeup.wait(end);
  }
}

/** The record that a worker left; undefined if the step had no outcome. */
function entryIn({ state, value }: PromiseRecord): JournalEntry | undefined {
  return state === "resolved" ? (decodeStrictly(value) as JournalEntry | undefined) : undefined;
}
