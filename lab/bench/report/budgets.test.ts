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

test("rows have budgets by the names of their figures, next to the budget for requests of the same operation", () => {
  const budgets = { look: 1, "rows read: look": 10 };
  const figures = [budgeted("look", 1), budgeted("look", 13, "rows read"), budgeted("look", 5, "rows written")];
  expect(overBudget(budgets, figures)).toEqual([{ message: "rows read: look: 13, over by 3 of 10", fails: true }]);
});
