/** The part of a terminal that the launcher needs: it turns the text written to it into the screen. */
import { styleText } from "node:util";

const SEQUENCE = new RegExp(`${"\u001b"}\\[(\\??)(\\d*)([A-Za-z])`, "y");

/** The lines on the screen, without empty ones at the end. Ignores colors and does not wrap. */
export function screenOf(written: string): string[] {
  const lines: string[] = [""];
  let row = 0;
  let column = 0;
  for (let i = 0; i < written.length;) {
    SEQUENCE.lastIndex = i;
    const [sequence, , count, command] = SEQUENCE.exec(written) ?? [];
    if (sequence !== undefined) {
      i += sequence.length;
      if (command === "A") row = Math.max(0, row - Number(count || 1));
      else if (command === "J") {
        lines.length = row + 1;
        lines[row] = (lines[row] ?? "").slice(0, column);
      } else if (command !== "m" && !/[hl]/.test(command ?? ""))
        throw new Error(`not followed: ${JSON.stringify(sequence)}`);
      continue;
    }
    const character = written[i++] as string;
    if (character === "\r") column = 0;
    else if (character === "\n") {
      row += 1;
      column = 0;
      while (lines.length <= row) lines.push("");
    } else {
      const line = (lines[row] ?? "").padEnd(column);
      lines[row] = line.slice(0, column) + character + line.slice(column + 1);
      column += 1;
    }
  }
  return lines.slice(0, lines.findLastIndex((line) => line !== "") + 1);
}

/** Whether the text has colors. */
export const isColored = (written: string): boolean =>
  written.includes(styleText("cyan", "x", { validateStream: false }).slice(0, 5));
