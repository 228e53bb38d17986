/** A terminal whose last lines change in place, below the permanent ones. */
import { stripVTControlCharacters } from "node:util";

export type Output = NodeJS.WritableStream & { isTTY?: boolean; columns?: number; rows?: number };

/** Lines are cut at the edge of the terminal, not wrapped: a wide character takes two columns. */
const WRAP = { off: "\u001b[?7l", on: "\u001b[?7h" };

/** Whether lines can be changed after they were written. */
export const canChange = ({ isTTY }: Output, { TERM, CI }: NodeJS.ProcessEnv): boolean =>
  isTTY === true && TERM !== "dumb" && !CI;

export class Screen {
  readonly #out: Output;
  /** The lines that change. */
  #shown: readonly string[] = [];

  constructor(out: Output) {
    this.#out = out;
    // Lines written for another width take another number of rows.
    out.on("resize", () => this.show(this.#shown));
  }

  get size(): { columns: number; rows: number } {
    return { columns: this.#out.columns || 80, rows: this.#out.rows || 24 };
  }

  /** Writes permanent lines, and below them the changing lines in place of the previous ones. */
  show(changing: readonly string[], staying: readonly string[] = []): void {
    if (changing.length + staying.length + this.#shown.length === 0) return;
    const rows = this.#shown.reduce((rows, line) => rows + this.#rowsOf(line), 0);
    // One write avoids flicker: up, to the left, and clear everything below.
    const clear = rows > 0 ? `\u001b[${rows}A\r\u001b[J` : "";
    const end = (line: string) => `${line}\n`;
    const changes = changing.length > 0 ? `${WRAP.off}${changing.map(end).join("")}${WRAP.on}` : "";
    this.#out.write(clear + staying.map(end).join("") + changes);
    this.#shown = changing;
  }

  /** The rows of a line: more than one if the terminal has become narrower. */
  #rowsOf(line: string): number {
    return Math.max(1, Math.ceil([...stripVTControlCharacters(line)].length / this.size.columns));
  }
}
