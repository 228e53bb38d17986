/** In which months of the year the broken worker does what to a gathering. It fires every timer at once. */
export const BROKEN_MONTHS = { settlesTwice: 3, drops: 4, fetchesAgain: 5, changes: 6 };
