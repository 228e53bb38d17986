/** The fields of a log line, with each error replaced by its stack. */
export function withStacks(fields: object): object {
  return Object.fromEntries(
    Object.entries(fields).map(([name, value]) => [
      name,
      value instanceof Error ? (value.stack ?? String(value)) : value,
    ]),
  );
}
