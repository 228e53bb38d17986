/** How much of the beginning and of the end of an overlong line is stored, each. */
const EXCERPT_BYTES = 1_000;

/** Splits a stream into lines, without byte order marks. For a line of more than `maxBytes`, `onTooLong` gets its beginning and its end. */
export function lineReader(
  maxBytes: number,
  onLine: (line: string) => void,
  onTooLong: (head: string, tail: string) => void,
): (chunk: Buffer) => void {
  const decoder = new TextDecoder();
  let parts: Buffer[] = [];
  let size = 0;
  let head: string | undefined;
  return (chunk) => {
    let from = 0;
    for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, from)) {
      add(chunk.subarray(from, end));
      const line = decoder.decode(Buffer.concat(parts));
      if (head !== undefined) onTooLong(head, line.slice(-EXCERPT_BYTES));
      else if (line !== "") onLine(line);
      [parts, size, head, from] = [[], 0, undefined, end + 1];
    }
    add(chunk.subarray(from));
  };

  function add(part: Buffer): void {
    parts.push(part);
    size += part.length;
    if (size <= maxBytes) return;
    const line = Buffer.concat(parts);
    head ??= line.toString("utf8", 0, EXCERPT_BYTES);
    // The middle of an overlong line is dropped as it arrives, so that it uses no memory.
    parts = [Buffer.from(line.subarray(-EXCERPT_BYTES))];
    size = maxBytes;
  }
}
