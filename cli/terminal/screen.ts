/** A terminal whose last lines change in place, below everything that stays. */
import { stripVTControlCharacters } from "node:util";

/** What a screen writes to: standard output, or what stands for it in a test. */
export type Output = NodeJS.WritableStream & { isTTY?: boolean; columns?: number; rows?: number };

/** Lines are cut at the edge of the terminal, rather than wrapped: a wide character takes two places. */
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
    // What was written for another width takes another number of rows.
    out.on("resize", () => this.show(this.#shown));
  }

  /** How many characters fit on a line, and how many lines there are. */
  get size(): { columns: number; rows: number } {
    return { columns: this.#out.columns || 80, rows: this.#out.rows || 24 };
  }

  /** Writes text that stays, if any, and below it the lines that change, in place of those before. */
  show(changing: readonly string[], staying: readonly string[] = []): void {
    if (changing.length + staying.length + this.#shown.length === 0) return;
    const rows = this.#shown.reduce((rows, line) => rows + this.#rowsOf(line), 0);
    // In one write, so that no half of it is seen: up, to the left, and whatever is below is gone.
    const clear = rows > 0 ? `\u001b[${rows}A\r\u001b[J` : "";
    const end = (line: string) => `${line}\n`;
    const changes = changing.length > 0 ? `${WRAP.off}${changing.map(end).join("")}${WRAP.on}` : "";
    this.#out.write(clear + staying.map(end).join("") + changes);
    this.#shown = changing;
  }

  /** The rows that a line takes now: more than one once the terminal has become narrower than it was. */
  #rowsOf(line: string): number {
    return Math.max(1, Math.ceil([...stripVTControlCharacters(line)].length / this.size.columns));
  }
}
