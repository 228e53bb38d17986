/** What a program host reads from its standard input. */
export interface HostConfig {
  socket: string;
  command: string;
  args: readonly string[];
  env: Record<string, string>;
  cwd: string;
  /** How long the program goes on without a worker, in milliseconds. */
  keep: number;
}

export const MAX_MESSAGE = 16_000_000;

/** The error of a call whose answer is longer: the server has done the call. */
export const TOO_LONG = {
  code: -32603,
  message: `The server has done the call, and its answer was dropped: it has more than ${MAX_MESSAGE} bytes.`,
};
