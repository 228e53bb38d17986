/** For how long starts of callers who are not told apart are noted after somebody asked for events, in milliseconds. */
const INTEREST = 600_000;

/** When somebody last asked this isolate for events, in milliseconds since the epoch. */
let asked = 0;

export const noteInterest = (): void => {
  asked = Date.now();
};

/** Whether somebody may be told of a job that begins now. */
export const isInterest = (): boolean => Date.now() - asked < INTEREST;
