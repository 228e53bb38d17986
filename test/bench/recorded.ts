/** Holds the measured ratios against those of an earlier run, kept in `recorded.json`. */
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { binomialDistribution, median, sum } from "simple-statistics";
import type { Figure } from "./figures.ts";
import type { Report } from "./report.ts";
import { type Pair, type Requests, ratiosOf } from "./requests.ts";

const FILE = join(import.meta.dirname, "recorded.json");

/** The share of a recorded ratio that a measured one may not fall below. */
const HELD = 0.9;

/** How often a ratio in doubt is measured again, and for how many rounds. */
const AGAIN = 4;
const ROUNDS = 5;

/** What is less likely than this is not put down to chance. Five rounds never are enough for it. */
const CHANCE = 0.01;

export interface Recorded extends Pick<Report, "made_at" | "commit" | "machine" | "versions" | "resonate"> {
  /** The median of the product's throughput as a share of the floor's. */
  ratios: { operation: string; revision: string; ratio: number }[];
  /** How many requests to Resonate each makes, by the name of the figure. */
  subrequests: Record<string, number>;
}

export async function record(report: Report): Promise<void> {
  const { made_at, commit, machine, versions, resonate, requests, figures } = report;
  const ratios = requests.map(({ operation, revision, ratio }) => ({
    operation,
    revision,
    ratio: Number(ratio.median.toFixed(3)),
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
  const recordedOf = ({ operation, revision }: Pair) =>
    ratios.find((each) => each.operation === operation.name && each.revision === revision)?.ratio ?? 0;
  const words = (pair: Pair) =>
    `${pair.operation.name} (${pair.revision}): ${median(ratiosOf(pair)).toFixed(3)} of the floor's throughput, recorded ${recordedOf(pair)}`;
  const isBelow = (pair: Pair) => median(ratiosOf(pair)) < HELD * recordedOf(pair);
  const isCertain = (pair: Pair) => chance(ratiosOf(pair), HELD * recordedOf(pair)) < CHANCE;

  let below = requests.pairs.filter(isBelow);
  for (let i = 0; i < AGAIN; i++) {
    const doubtful = below.filter((pair) => !isCertain(pair));
    if (doubtful.length === 0) break;
    log(`measuring again: ${doubtful.map(words).join("; ")}`);
    await requests.measure(ROUNDS, doubtful);
    below = below.filter(isBelow);
  }
  for (const pair of below) if (!isCertain(pair)) log(`too noisy to tell: ${words(pair)}`);
  return below.filter(isCertain).map(words);
}

/** How likely it is that so few values reach `level`, if each did with an even chance: the sign test. */
function chance(values: number[], level: number): number {
  const reached = values.filter((value) => value >= level).length;
  const probabilities = binomialDistribution(values.length, 0.5) ?? [];
  return sum(probabilities.slice(0, reached + 1));
}
