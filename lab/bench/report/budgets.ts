/** Compares the requests and the rows of each operation with `budgets.json`. */
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { atMost, exactly, type Figure, figure } from "./figures.ts";

const FILE = join(import.meta.dirname, "budgets.json");

const REQUESTS = "requests to Resonate";

/** The counts of an operation: requests of edge or worker; rows of the account's objects, and requests to them. */
export type Counted = typeof REQUESTS | "rows written" | "rows read" | "requests to objects";

/** The excess that is reported but does not fail: a quarter of the budget, and at least one. */
const tolerated = (budget: number) => Math.max(1, Math.floor(budget / 4));

/** The largest accepted count of each operation. Keys are the operation's name for requests, and the figure's name for rows. */
export type Budgets = Readonly<Record<string, number>>;

/** A figure with a count of an operation. */
export const budgeted = (operation: string, count: number, what: Counted = REQUESTS): Figure =>
  figure(`${what}: ${operation}`, "", exactly(count));

export async function readBudgets(): Promise<Budgets> {
  return JSON.parse(await readFile(FILE, "utf8"));
}

/** Sets the budget of each measured operation that has none. Existing budgets are only changed by hand. */
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
  /** Whether the excess is too large to be only reported. */
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
  return /^(rows (written|read)|requests to objects): /.test(name) ? name : undefined;
}

const operationsIn = (figures: readonly Figure[]) =>
  figures.flatMap((each) => {
    const operation = operationIn(each);
    return operation === undefined ? [] : [{ name: each.name, operation, count: each.median }];
  });
