/** Writes a log line in which each error is its stack. */
export function logError(msg: string, fields: object): void {
  const plain = Object.entries(fields).map(([name, value]) => [
    name,
    value instanceof Error ? (value.stack ?? String(value)) : value,
  ]);
  console.error(JSON.stringify({ level: "error", msg, ...Object.fromEntries(plain) }));
}
