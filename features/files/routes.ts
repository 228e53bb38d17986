/** The addresses of files. */
import type { Route } from "../../core/tools/index.ts";
import { limitTries } from "../../functions/http/refused-tries.ts";
import type { DownloadOptions, LoadFiles } from "./files.ts";

export const fileRoutes = (loadFiles: LoadFiles, options: DownloadOptions): Route[] => [
  {
    methods: ["GET"],
    paths: ["/files/:sealed"],
    middleware: [limitTries(options.tries)],
    load: async () => {
      const files = await loadFiles();
      return (c) => files.download(c.req.raw, c.req.param("sealed") ?? "", options);
    },
  },
];
