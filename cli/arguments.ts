/** Something is wrong with a command's arguments; what is printed ends with the command's usage. */
export class WrongArguments extends Error {}

/** Reads a command's arguments. @throws {WrongArguments} with the message of what `read` throws */
export function readArguments<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw new WrongArguments((error as Error).message);
  }
}
