/** The configuration that a program host reads from its standard input. */
export interface HostConfig {
  socket: string;
  command: string;
  args: readonly string[];
  env: Record<string, string>;
  cwd: string;
  /** How long the program continues without a worker, in milliseconds. */
  keep: number;
}

/** The maximum size of a message from a server. Its images, sounds and files can be stored as files. */
export const MAX_MESSAGE_BYTES = 32_000_000;

/** The maximum length of an answer that is stored with its job, in characters of JSON. */
export const MAX_STORED_ANSWER_CHARACTERS = 16_000_000;

/** The maximum nesting of a message. The code that walks it is recursive, here and in clients. */
export const MAX_LEVELS = 1_000;

/** The error of a call whose answer is longer than `maxBytes`, although the server has executed the call. */
export const tooLongError = (maxBytes: number) => ({
  code: -32603,
  message: `The server has done the call, and its answer was dropped: it has more than ${maxBytes} bytes.`,
});

/** The error of a call whose answer is nested more than {@link MAX_LEVELS} deep, although the server has executed the call. */
export const TOO_DEEP = {
  code: -32603,
  message: `The server has done the call, and its answer was dropped: it is nested more than ${MAX_LEVELS} levels deep.`,
};
