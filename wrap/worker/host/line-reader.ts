/** How much is kept of each end of a line that is too long, in bytes. */
const KEPT = 1_000;

/** Splits a stream into lines. Of a line of more than `most` bytes, `tooLong` gets the beginning and the end. */
export function lineReader(
  most: number,
  onLine: (line: string) => void,
  tooLong: (head: string, tail: string) => void,
): (chunk: Buffer) => void {
  let parts: Buffer[] = [];
  let size = 0;
  let head: string | undefined;
  return (chunk) => {
    let from = 0;
    for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, from)) {
      take(chunk.subarray(from, end));
      const line = Buffer.concat(parts).toString("utf8");
      if (head !== undefined) tooLong(head, line.slice(-KEPT));
      else if (line !== "") onLine(line);
      [parts, size, head, from] = [[], 0, undefined, end + 1];
    }
    take(chunk.subarray(from));
  };

  function take(part: Buffer): void {
    parts.push(part);
    size += part.length;
    if (size <= most) return;
    const line = Buffer.concat(parts);
    head ??= line.toString("utf8", 0, KEPT);
    // What is dropped does not wait for the end of the line.
    parts = [Buffer.from(line.subarray(-KEPT))];
    size = most;
  }
}
