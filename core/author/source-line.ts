/** Finds the line of the author's source that makes a call, from the stack. */

/** How many frames down the stack the author's function may be. */
const MAX_FRAMES = 50;

const LOCATION_PATTERN = /(?:\(|\s)((?:file:\/\/)?\/[^()]*?):(\d+):\d+\)?$/;

/** Matches this package's files whose code stands between an author's function and the code that it calls. */
const PACKAGE_FILE_PATTERN = /\/core\/(?:engine|author|tools)\/(?!.*\.test\.)/;

interface Frame {
  file: string;
  line: string;
}

/** ` at file:line` of the author's code, and the library that made the call; empty if the stack does not tell. */
export function sourceLine(before = ""): string {
  const frames = authorFrames(stackHere());
  const [callee] = frames;
  const caller = frames.findLast(({ file }) => !file.includes("/node_modules/"));
  if (!callee || !caller) return "";
  const through = callee.file === caller.file ? "" : ` (through ${inWords(callee)})`;
  return `${before} at ${inWords(caller)}${through}`;
}

/** The longest line of a stack that is searched, in characters. */
const MAX_LINE_CHARACTERS = 2_000;

/** An error's stack without its message, which others may have written: it may look like frames, or be very long to search. */
export function framesIn({ message, stack = "" }: Error): string {
  const lines = stack.replace(message, "").split("\n");
  // If the message was changed later, the stack still has the first one.
  return lines.filter((line) => line.length <= MAX_LINE_CHARACTERS && line.startsWith("    at ")).join("\n");
}

/** The first line of the author's code in an error's stack, as ` (at file:line)`; empty if the stack does not tell. */
export function lineIn(error: Error): string {
  const frame = framesOf(framesIn(error)).find(
    ({ file }) => !PACKAGE_FILE_PATTERN.test(file) && !file.includes("/node_modules/"),
  );
  return frame ? ` (at ${inWords(frame)})` : "";
}

/** The frames of the innermost of the author's functions, up to this package's code that called it. */
function authorFrames(stack: string): Frame[] {
  const frames = framesOf(stack);
  // In a bundle all code is in one file, so nothing tells whose code it is.
  if (!frames[0] || !PACKAGE_FILE_PATTERN.test(frames[0].file)) return [];
  const begin = frames.findIndex(({ file }) => !PACKAGE_FILE_PATTERN.test(file));
  if (begin < 0) return [];
  const rest = frames.slice(begin);
  const end = rest.findIndex(({ file }) => PACKAGE_FILE_PATTERN.test(file));
  return end < 0 ? rest : rest.slice(0, end);
}

function framesOf(stack: string): Frame[] {
  return stack.split("\n").flatMap((text) => {
    const [, file, line] = LOCATION_PATTERN.exec(text.trim()) ?? [];
    return file && line ? [{ file, line }] : [];
  });
}

function stackHere(): string {
  const errors = Error as { stackTraceLimit?: number };
  const { stackTraceLimit = 10 } = errors;
  errors.stackTraceLimit = MAX_FRAMES;
  const { stack = "" } = new Error("here");
  errors.stackTraceLimit = stackTraceLimit;
  return stack;
}

/** The file and line in words; the path begins with the package or the last folder. */
function inWords({ file, line }: Frame): string {
  const path = file.split("/node_modules/").at(-1) as string;
  return `${path === file ? file.split("/").slice(-2).join("/") : path}:${line}`;
}
