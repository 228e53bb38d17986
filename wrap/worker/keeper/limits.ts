/** What a keeper is told by its standard input. */
export interface KeeperConfig {
  socket: string;
  command: string;
  args: readonly string[];
  env: Record<string, string>;
  cwd: string;
  /** How long the program goes on without a worker, in milliseconds. */
  keep: number;
}

/** The longest message of a server, in bytes. */
export const MAX_LINE = 16_000_000;
