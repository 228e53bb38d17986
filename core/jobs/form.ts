/** The form in which edges and workers store jobs and exchange them. */

/**
 * Raised by each change that code before it cannot read. Edges and workers of one deployment must have the same form while they
 * run side by side.
 */
export const JOB_FORMAT_VERSION: number = 1;

/** The header in which an edge tells a worker its form. */
export const JOB_FORMAT_HEADER = "durable-mcp-form";

/** Why two parts with different forms must not run side by side. */
export const formatMismatch = (one: string, its: number, other: string, others: number): string =>
  `${one} keeps jobs in form ${its}, and ${other} in form ${others}: they must not run side by side`;
