/** The shortest interval of a schedule, in seconds. */
export const SHORTEST = 60;
