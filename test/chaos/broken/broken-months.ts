/** The months whose gatherings the broken worker spoils, by fault. It also fires every timer at once. */
export const BROKEN_MONTHS = { settlesTwice: 3, drops: 4, fetchesAgain: 5, changes: 6 };
