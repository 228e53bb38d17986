/** How much of the beginning and of the end of an overlong line is kept, in bytes each. */
const KEPT = 1_000;

/** Splits a stream into lines. For a line of more than `most` bytes, `tooLong` gets its beginning and its end. */
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
    // The middle of an overlong line is dropped as it arrives, so that it takes no memory.
    parts = [Buffer.from(line.subarray(-KEPT))];
    size = most;
  }
}
