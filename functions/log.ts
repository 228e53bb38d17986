/** One structured line, collected by Workers Logs (`console` is how a Worker logs). */
export function logError(message: string, error: unknown): void {
  const detail = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
  // biome-ignore lint/suspicious/noConsole: the platform's log
  console.error(JSON.stringify({ level: "error", msg: message, error: detail }));
}
