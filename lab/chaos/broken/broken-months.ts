/** The months of the year in which the broken worker spoils a gathering, by fault. It fires every timer at once. */
export const BROKEN_MONTHS = { settlesTwice: 3, drops: 4, fetchesAgain: 5, changes: 6 };
