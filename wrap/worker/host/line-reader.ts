/** Splits a stream into lines. At a line of more than `most` bytes it calls `tooLong` and stops. */
export function lineReader(most: number, onLine: (line: string) => void, tooLong: () => void): (chunk: Buffer) => void {
  let parts: Buffer[] = [];
  let size = 0;
  let isOver = false;
  return (chunk) => {
    if (isOver) return;
    let from = 0;
    for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, from)) {
      const line = Buffer.concat([...parts, chunk.subarray(from, end)]).toString("utf8");
      [parts, size, from] = [[], 0, end + 1];
      if (line !== "") onLine(line);
    }
    parts.push(chunk.subarray(from));
    size += chunk.length - from;
    isOver = size > most;
    if (isOver) tooLong();
  };
}
