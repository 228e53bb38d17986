/** In which form edges and workers keep jobs, and speak of them. */

/**
 * A change that code before it cannot read raises it. Edges and workers of one deployment that have different ones must not
 * run side by side; those before the number have 1.
 */
export const FORM: number = 1;

/** The header in which an edge tells a worker its own. */
export const FORM_HEADER = "durable-mcp-form";

/** Why a part of one form must not run beside a part of another. */
export const apart = (one: string, its: number, other: string, others: number): string =>
  `${one} keeps jobs in form ${its}, and ${other} in form ${others}: they must not run side by side`;
