import { expect, test } from "vitest";
import { budgeted, overBudget, withBudgets } from "./budgets.ts";

const BUDGETS = { look: 1, start: 12 };

test("an operation within its budget is not reported", () => {
  expect(overBudget(BUDGETS, [budgeted("look", 1), budgeted("start", 9), budgeted("new", 5)])).toEqual([]);
});

test("a small excess is reported, a large one fails", () => {
  expect(overBudget(BUDGETS, [budgeted("look", 2), budgeted("start", 16)])).toEqual([
    { message: "requests to Resonate: look: 2, over by 1 of 1", fails: false },
    { message: "requests to Resonate: start: 16, over by 4 of 12", fails: true },
  ]);
});

test("the report shows the budget as a target", () => {
  expect(withBudgets(BUDGETS, [budgeted("look", 2)])).toMatchObject([{ median: 2, target: { at: "most", value: 1 } }]);
});
