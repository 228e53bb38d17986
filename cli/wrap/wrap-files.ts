/** The names of the files, in a folder, that `wrap` serves a server from: the description of the server, and its tools. */
export const FILES = { options: "options.json", snapshot: "snapshot.json" } as const;
