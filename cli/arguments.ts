/**
 * Reads a command's arguments with `read`. If `read` returns undefined, for `--help`, prints the usage. If it throws,
 * prints the error and the usage, and exits with code 2.
 */
export function readArguments<T>(read: () => T | undefined, usage: string): T | undefined {
  try {
    const options = read();
    if (options === undefined) console.log(usage);
    return options;
  } catch (error) {
    console.error(`${(error as Error).message}\n\n${usage}`);
    process.exit(2);
  }
}
