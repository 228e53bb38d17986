/** The configuration that a program host reads from its standard input. */
export interface HostConfig {
  socket: string;
  command: string;
  args: readonly string[];
  env: Record<string, string>;
  cwd: string;
  /** How long the program goes on without a worker, in milliseconds. */
  keep: number;
}

/** The longest message that is accepted from a server, in bytes. Its images, sounds and files can be stored as files. */
export const MAX_MESSAGE = 32_000_000;

/** The longest answer that is kept with its job, in characters of JSON. */
export const MAX_KEPT_ANSWER = 16_000_000;

/** The error of a call whose answer is longer than `most` bytes, although the server has executed the call. */
export const tooLong = (most: number) => ({
  code: -32603,
  message: `The server has done the call, and its answer was dropped: it has more than ${most} bytes.`,
});
