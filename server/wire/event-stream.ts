/** The event streams over which workers and clients receive messages: `GET /poll/{group}/{id}`. */

/**
 * The comment that is written to each event stream at the start and then at this interval. It shows the reader that the
 * connection is alive, and reveals a dead connection to this server.
 */
export const KEEP_ALIVE_COMMENT = ": keep-alive\n\n";
export const KEEP_ALIVE_INTERVAL_MS = 5_000;

export const EVENT_STREAM_HEADERS = { "content-type": "text/event-stream", "cache-control": "no-cache" };

/** The group and id in the path of an event stream; undefined for any other path. */
export function parsePollPath(path: string): { group: string; id: string } | undefined {
  const [, group, id] = /^\/poll\/([^/]+)\/([^/]+)$/.exec(path) ?? [];
  if (group === undefined || id === undefined) return undefined;
  return { group: decodePart(group), id: decodePart(id) };
}

/** Decodes a part of a URL's path; a malformed part stays as it is. */
export function decodePart(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** The text of a stream's next messages. */
export function eventsOf(messages: readonly string[]): string {
  return messages.map((message) => `data: ${message}\n\n`).join("");
}
