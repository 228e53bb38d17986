/** The names of the files from which `wrap` serves a server: the description of the server, and its tools. */
export const FILES = { options: "options.json", snapshot: "snapshot.json" } as const;
