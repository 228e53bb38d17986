/** The shortest interval of a schedule, in seconds. */
export const MIN_INTERVAL_SECONDS = 60;
