/** The files of the pages, with the headers that keep them to themselves. */

/** Where they lie: Cloudflare's static assets, or the folder itself in plain workerd. */
export interface PageFiles {
  fetch(request: Request): Promise<Response>;
}

const TYPES: Record<string, string> = {
  html: "text/html; charset=utf-8",
  js: "text/javascript; charset=utf-8",
  css: "text/css; charset=utf-8",
  svg: "image/svg+xml",
  png: "image/png",
};

/** Nothing of another origin, nothing within another page, and no script or style that is not a file of ours. */
const policy = (abroad = "") =>
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; " +
  `frame-ancestors 'none'; connect-src 'self' ${abroad}`;

const HEADERS = {
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
  "referrer-policy": "no-referrer",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
};

/** A file of the pages as an answer to `request`; undefined when there is none. `abroad`: what they may speak to besides. */
export async function fileOf(
  { files, abroad }: { files: PageFiles | undefined; abroad: string | undefined },
  name: string,
  request: Request,
): Promise<Response | undefined> {
  const type = /^[\w-]+\.([a-z]+)$/.exec(name)?.[1];
  const contentType = type === undefined ? undefined : TYPES[type];
  if (!files || contentType === undefined) return undefined;
  const etag = request.headers.get("if-none-match");
  const found = await files.fetch(
    new Request(new URL(`/${name}`, request.url), { headers: etag ? { "if-none-match": etag } : {} }),
  );
  if (!found.ok && found.status !== 304) {
    await found.body?.cancel();
    return undefined;
  }
  const known = found.headers.get("etag");
  // What a name with a hash in it stands for never changes.
  const cache = name.startsWith("chunk-") ? "public, max-age=31536000, immutable" : "no-cache";
  // Icons are for others to show.
  const sharing = contentType.startsWith("image/") && { "cross-origin-resource-policy": "cross-origin" };
  const headers = {
    "content-security-policy": policy(abroad),
    ...HEADERS,
    ...sharing,
    "content-type": contentType,
    "cache-control": cache,
    ...(known && { etag: known }),
  };
  return new Response(found.body, { status: found.status, headers });
}
