/** Compares the requests, the rows and the CPU of each operation with `budgets.json`. */
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { atMost, exactly, type Figure, figure } from "./figures.ts";

const FILE = join(import.meta.dirname, "budgets.json");

const REQUESTS = "requests to Resonate";
const OTHERS = ["rows written", "rows read", "requests to objects", "CPU in percent of a ping's"] as const;

/**
 * The costs that have budgets: requests of the edge or the worker, rows of the account's objects and requests to these
 * objects, and the edge's CPU for malformed content beside a `ping` with the same content.
 */
export type Counted = typeof REQUESTS | (typeof OTHERS)[number];

/** The excess that is reported but does not fail: a quarter of the budget, and at least one. */
const tolerated = (budget: number) => Math.max(1, Math.floor(budget / 4));

/** The largest accepted cost of each operation. Keys are the operation's name for requests, and the figure's name for the rest. */
export type Budgets = Readonly<Record<string, number>>;

/** A figure with a cost of an operation. */
export const budgeted = (operation: string, count: number, what: Counted = REQUESTS): Figure =>
  figure(`${what}: ${operation}`, "", exactly(count));

export async function readBudgets(): Promise<Budgets> {
  return JSON.parse(await readFile(FILE, "utf8"));
}

/** Sets the budget of each measured operation that has none; the others change by hand. */
export async function addBudgets(figures: readonly Figure[]): Promise<void> {
  const measured = operationsIn(figures).map(({ operation, count }) => [operation, count] as const);
  const budgets = { ...Object.fromEntries(measured), ...(await readBudgets()) };
  await writeFile(FILE, `${JSON.stringify(budgets, undefined, 2)}\n`);
}

/** The figures with their budgets as targets. */
export const withBudgets = (budgets: Budgets, figures: readonly Figure[]): Figure[] =>
  figures.map((each) => {
    const budget = budgets[operationIn(each) ?? ""];
    return budget === undefined ? each : { ...each, target: atMost(budget) };
  });

export interface Excess {
  /** For people. */
  message: string;
  /** Whether it is too large to be only reported. */
  fails: boolean;
}

/** The operations that take more than their budget. */
export function overBudget(budgets: Budgets, figures: readonly Figure[]): Excess[] {
  return operationsIn(figures).flatMap(({ name, operation, count }) => {
    const budget = budgets[operation];
    if (budget === undefined || count <= budget) return [];
    const message = `${name}: ${count}, over by ${count - budget} of ${budget}`;
    return [{ message, fails: count - budget > tolerated(budget) }];
  });
}

function operationIn({ name }: Figure): string | undefined {
  if (name.startsWith(`${REQUESTS}: `)) return name.slice(REQUESTS.length + 2);
  return OTHERS.some((each) => name.startsWith(`${each}: `)) ? name : undefined;
}

const operationsIn = (figures: readonly Figure[]) =>
  figures.flatMap((each) => {
    const operation = operationIn(each);
    return operation === undefined ? [] : [{ name: each.name, operation, count: each.median }];
  });
