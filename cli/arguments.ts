/** The arguments of commands. One description of an option serves both `parseArgs` and `--help`. */
import { readProject, typed } from "./project.ts";

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

export const flag = (says: string) => ({ type: "boolean", default: false, says }) as const;
/** An option with a value, which `--help` calls `what`. */
export const option = (what: string, says: string) => ({ type: "string", what, says }) as const;
export const optionOr = (usual: string, what: string, says: string) => ({ ...option(what, says), default: usual });
export const optionList = (what: string, says: string) => ({ ...option(what, says), multiple: true }) as const;

/** Options without `says` are not listed: the text before them describes them. */
type Options = Readonly<Record<string, { readonly type: string; readonly says?: string; readonly what?: string }>>;

/**
 * Returns a function that makes the text of `--help` for a command.
 *
 * @param forms the arguments after the command's name, one line for each form
 */
export function usageOf(forms: string | readonly string[], text: string, options: Options = {}) {
  return (command: string): string => {
    const project = readProject();
    const typedForms = [forms].flat().map((form) => typed(project, command, form));
    const all: Options = { ...options, help: flag("show this text") };
    const listed = Object.entries(all).flatMap(([name, { what, says }]) =>
      says === undefined ? [] : [{ option: `--${name}${what === undefined ? "" : ` ${what}`}`, says }],
    );
    const width = Math.max(...listed.map(({ option }) => option.length)) + 2;
    const lines = listed.map(
      ({ option, says }) => `  ${option.padEnd(width)}${says.replaceAll("\n", `\n  ${" ".repeat(width)}`)}`,
    );
    return `Usage: ${typedForms.join("\n       ")}\n\n${text}\n\n${lines.join("\n")}\n`;
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
