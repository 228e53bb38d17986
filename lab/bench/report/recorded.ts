/** Compares the measured ratios with those of an earlier run in `recorded.json`. */
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { binomialDistribution, median, sum } from "simple-statistics";
import { type Pair, RATIOS, type Requests } from "../measure/requests.ts";
import type { Spread } from "./figures.ts";
import type { Report } from "./report.ts";

const FILE = join(import.meta.dirname, "recorded.json");

/** The share of a recorded ratio that a measured one may not fall below. */
const HELD = 0.9;

/** How often a doubtful ratio is measured again, and for how many rounds each time. */
const AGAIN = 4;
const ROUNDS = 5;

/** A result with a lower probability than this does not count as chance. Five rounds are never enough for that. */
const CHANCE = 0.01;

type Kind = keyof typeof RATIOS;
const KINDS = Object.keys(RATIOS) as Kind[];

export interface Recorded extends Pick<Report, "made_at" | "commit" | "machine" | "versions" | "resonate"> {
  /**
   * The lower quartile of each ratio to the floor. Medians differ by more than a tenth between runs, so later runs might not
   * reach the median of a lucky run.
   */
  ratios: ({ operation: string; revision: string } & Record<Kind, number>)[];
}

export async function record(report: Report): Promise<void> {
  const { made_at, commit, machine, versions, resonate, requests } = report;
  const rounded = ({ q1 }: Spread) => Number(q1.toFixed(3));
  const ratios = requests.map(({ operation, revision, ratio, cpu_ratio }) => ({
    operation,
    revision,
    throughput: rounded(ratio),
    "CPU time": rounded(cpu_ratio),
  }));
  const recorded: Recorded = { made_at, commit, machine, versions, resonate, ratios };
  await writeFile(FILE, `${JSON.stringify(recorded, undefined, 2)}\n`);
}

/** @throws {Error} if nothing was recorded */
export async function readRecorded(): Promise<Recorded> {
  const text = await readFile(FILE, "utf8").catch((cause) => {
    throw new Error("Nothing is recorded to compare with: run `npm run bench -- --record` first.", { cause });
  });
  return JSON.parse(text);
}

/**
 * Describes the ratios that fell below nine tenths of the recorded ones. A ratio with a median below that is measured again
 * until the median is above it, or until a sign test excludes chance. A ratio that stays within the noise has not fallen.
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

/** A ratio of the measurements so far, compared with the recorded one. */
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

/** The sign test: the probability that so few values reach `level` if each does so with a chance of one half. */
function chance(values: number[], level: number): number {
  const reached = values.filter((value) => value >= level).length;
  const probabilities = binomialDistribution(values.length, 0.5) ?? [];
  return sum(probabilities.slice(0, reached + 1));
}
