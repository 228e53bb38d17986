/** Compares the requests of each operation with `budgets.json`. */
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { atMost, exactly, type Figure, figure } from "./figures.ts";

const FILE = join(import.meta.dirname, "budgets.json");

const PREFIX = "requests to Resonate: ";

/** The excess that is reported, but does not fail: a quarter of the budget, and at least one request. */
const tolerated = (budget: number) => Math.max(1, Math.floor(budget / 4));

/** The most requests of each operation, by its name. */
export type Budgets = Readonly<Record<string, number>>;

/** A figure of how many requests an operation made. */
export const budgeted = (operation: string, requests: number): Figure =>
  figure(PREFIX + operation, "", exactly(requests));

export async function readBudgets(): Promise<Budgets> {
  return JSON.parse(await readFile(FILE, "utf8"));
}

/** Sets the budget of each measured operation that has none; the others change by hand. */
export async function addBudgets(figures: readonly Figure[]): Promise<void> {
  const measured = operationsIn(figures).map(({ operation, requests }) => [operation, requests] as const);
  const budgets = { ...Object.fromEntries(measured), ...(await readBudgets()) };
  await writeFile(FILE, `${JSON.stringify(budgets, undefined, 2)}\n`);
}

/** The figures with their budgets as targets. */
export const withBudgets = (budgets: Budgets, figures: readonly Figure[]): Figure[] =>
  figures.map((each) => {
    const budget = budgets[each.name.slice(PREFIX.length)];
    return each.name.startsWith(PREFIX) && budget !== undefined ? { ...each, target: atMost(budget) } : each;
  });

export interface Excess {
  /** For people. */
  message: string;
  /** Whether it is too large to be only reported. */
  fails: boolean;
}

/** The operations that make more requests than their budget. */
export function overBudget(budgets: Budgets, figures: readonly Figure[]): Excess[] {
  return operationsIn(figures).flatMap(({ operation, requests }) => {
    const budget = budgets[operation];
    if (budget === undefined || requests <= budget) return [];
    const message = `${PREFIX}${operation}: ${requests}, over by ${requests - budget} of ${budget}`;
    return [{ message, fails: requests - budget > tolerated(budget) }];
  });
}

const operationsIn = (figures: readonly Figure[]) =>
  figures
    .filter(({ name }) => name.startsWith(PREFIX))
    .map(({ name, median }) => ({ operation: name.slice(PREFIX.length), requests: median }));
