/** Holds the measured ratios against those of an earlier run, kept in `recorded.json`. */
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { binomialDistribution, median, sum } from "simple-statistics";
import type { Figure, Spread } from "./figures.ts";
import type { Report } from "./report.ts";
import { type Pair, RATIOS, type Requests } from "./requests.ts";

const FILE = join(import.meta.dirname, "recorded.json");

/** The share of a recorded ratio that a measured one may not fall below. */
const HELD = 0.9;

/** How often a ratio in doubt is measured again, and for how many rounds. */
const AGAIN = 4;
const ROUNDS = 5;

/** What is less likely than this is not put down to chance. Five rounds never are enough for it. */
const CHANCE = 0.01;

type Kind = keyof typeof RATIOS;
const KINDS = Object.keys(RATIOS) as Kind[];

export interface Recorded extends Pick<Report, "made_at" | "commit" | "machine" | "versions" | "resonate"> {
  /**
   * The lower quartile of each ratio to the floor: what three of four rounds reached. From one run to the next the
   * medians differ by more than a tenth, and a ratio that was recorded on a lucky day could not be held.
   */
  ratios: ({ operation: string; revision: string } & Record<Kind, number>)[];
  /** How many requests to Resonate each makes, by the name of the figure. */
  subrequests: Record<string, number>;
}

export async function record(report: Report): Promise<void> {
  const { made_at, commit, machine, versions, resonate, requests, figures } = report;
  const rounded = ({ q1 }: Spread) => Number(q1.toFixed(3));
  const ratios = requests.map(({ operation, revision, ratio, cpu_ratio }) => ({
    operation,
    revision,
    throughput: rounded(ratio),
    "CPU time": rounded(cpu_ratio),
  }));
  const subrequests = Object.fromEntries(countsIn(figures).map(({ name, median }) => [name, median]));
  const recorded: Recorded = { made_at, commit, machine, versions, resonate, ratios, subrequests };
  await writeFile(FILE, `${JSON.stringify(recorded, undefined, 2)}\n`);
}

const countsIn = (figures: readonly Figure[]) => figures.filter(({ name }) => name.startsWith("subrequests: "));

/** What was recorded last. @throws {Error} when nothing was */
export async function readRecorded(): Promise<Recorded> {
  const text = await readFile(FILE, "utf8").catch((cause) => {
    throw new Error("Nothing is recorded to compare with: run `npm run bench -- --record` first.", { cause });
  });
  return JSON.parse(text);
}

/** The requests to Resonate that have become more than was recorded, worded for people. */
export function addedSubrequests({ subrequests }: Pick<Recorded, "subrequests">, figures: readonly Figure[]): string[] {
  const added = countsIn(figures).filter(({ name, median }) => median > (subrequests[name] ?? median));
  return added.map(({ name, median }) => `${name}: ${median}, recorded ${subrequests[name]}`);
}

/**
 * What fell below nine tenths of what was recorded, worded for people. A ratio whose median is below is measured again
 * until it is not, or until chance does not explain it: too few rounds are above for a ratio that as often is as not.
 * One that can never be told from noise has not fallen.
 */
export async function fallenRatios(
  { ratios }: Pick<Recorded, "ratios">,
  requests: Pick<Requests, "pairs" | "measure">,
  log: (text: string) => void,
): Promise<string[]> {
  const held = requests.pairs.flatMap((pair) => KINDS.map((kind) => hold(ratios, pair, kind)));
  let below = held.filter((each) => each.isBelow());
  for (let i = 0; i < AGAIN; i++) {
    const doubtful = below.filter((each) => !each.isCertain());
    if (doubtful.length === 0) break;
    log(`measuring again: ${doubtful.map((each) => each.words()).join("; ")}`);
    await requests.measure(ROUNDS, [...new Set(doubtful.map(({ pair }) => pair))]);
    below = below.filter((each) => each.isBelow());
  }
  for (const each of below) if (!each.isCertain()) log(`too noisy to tell: ${each.words()}`);
  return below.filter((each) => each.isCertain()).map((each) => each.words());
}

/** A ratio, as it stands with the measurements made so far, against what was recorded of it. */
function hold(ratios: Recorded["ratios"], pair: Pair, kind: Kind) {
  const { operation, revision } = pair;
  const recorded = ratios.find((each) => each.operation === operation.name && each.revision === revision)?.[kind] ?? 0;
  const level = HELD * recorded;
  const measured = () => RATIOS[kind](pair);
  return {
    pair,
    isBelow: () => median(measured()) < level,
    isCertain: () => chance(measured(), level) < CHANCE,
    words: () =>
      `${operation.name} (${revision}) by ${kind}: ${median(measured()).toFixed(3)} of the floor, recorded ${recorded}`,
  };
}

/** How likely it is that so few values reach `level`, if each did with an even chance: the sign test. */
function chance(values: number[], level: number): number {
  const reached = values.filter((value) => value >= level).length;
  const probabilities = binomialDistribution(values.length, 0.5) ?? [];
  return sum(probabilities.slice(0, reached + 1));
}
