/** The arguments of commands. One description of an option serves both `parseArgs` and `--help`. */
import { commandLine, readProject } from "./project.ts";

/** A command's arguments are wrong. The command's usage is printed after the message. */
export class WrongArguments extends Error {}

/** Reads arguments. @throws {WrongArguments} with the message of the error that `read` throws */
export function readArguments<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw new WrongArguments((error as Error).message);
  }
}

export const flag = (description: string) => ({ type: "boolean", default: false, description }) as const;
/** An option with a value, for which `--help` shows `placeholder`. */
export const option = (placeholder: string, description: string) =>
  ({ type: "string", placeholder, description }) as const;
export const optionOr = (usual: string, placeholder: string, description: string) => ({
  ...option(placeholder, description),
  default: usual,
});
export const optionList = (placeholder: string, description: string) =>
  ({ ...option(placeholder, description), multiple: true }) as const;

interface Option {
  readonly type: string;
  /** An option without a description is not listed: the text before the list describes it. */
  readonly description?: string;
  readonly placeholder?: string;
}

type Options = Readonly<Record<string, Option>>;

/**
 * Returns a function that creates the text of `--help` for a command.
 *
 * @param forms the arguments after the command's name, one line for each form
 */
export function usageOf(forms: string | readonly string[], text: string, options: Options = {}) {
  return (command: string): string => {
    const project = readProject();
    const usageLines = [forms].flat().map((form) => commandLine(project, command, form));
    const all: Options = { ...options, help: flag("show this text") };
    const rows = Object.entries(all).flatMap(([name, { placeholder, description }]) =>
      description === undefined
        ? []
        : [{ option: `--${name}${placeholder === undefined ? "" : ` ${placeholder}`}`, description }],
    );
    const width = Math.max(...rows.map(({ option }) => option.length)) + 2;
    const lines = rows.map(
      ({ option, description }) =>
        `  ${option.padEnd(width)}${description.replaceAll("\n", `\n  ${" ".repeat(width)}`)}`,
    );
    return `Usage: ${usageLines.join("\n       ")}\n\n${text}\n\n${lines.join("\n")}\n`;
  };
}

/** The value of an option among arguments for another program. */
export function optionIn(args: readonly string[], option: string): string | undefined {
  const at = args.findIndex((arg) => arg === option || arg.startsWith(`${option}=`));
  return args[at] === option ? args[at + 1] : args[at]?.slice(option.length + 1);
}

/** An http or https address. @throws {WrongArguments} that names the option */
export function addressIn(option: string, text = ""): URL {
  if (URL.canParse(text) && /^https?:$/.test(new URL(text).protocol)) return new URL(text);
  throw new WrongArguments(`${option} must be an http:// or https:// address.`);
}
