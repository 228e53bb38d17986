/**
 * Reads a command's arguments; undefined when they ask for help, which is printed then. What is wrong with them is said,
 * with the usage, and the process ends with exit code 2.
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
