/** What a job's promise is created with: its function, its arguments, and what features add for the worker. */
export interface JobCall {
  func: string;
  args: readonly unknown[];
  version: number;
  /** The secret from which `ctx.random` and `ctx.uuid` are derived. */
  seed: string;
}
