/** The files of pages and cards, with headers that isolate them. */

/** Cloudflare's static assets; in plain workerd the folder itself. */
export interface Assets {
  fetch(request: Request): Promise<Response>;
}

const CONTENT_TYPES: Record<string, string> = {
  html: "text/html; charset=utf-8",
  js: "text/javascript; charset=utf-8",
  css: "text/css; charset=utf-8",
  svg: "image/svg+xml",
  png: "image/png",
};

/** Pages load nothing from other origins, are shown in no other page, and run no inline script or style. */
const policy = (issuer = "") =>
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; media-src 'self'; base-uri 'none'; form-action 'none'; " +
  `frame-ancestors 'none'; connect-src 'self' ${issuer}`;

const SECURITY_HEADERS = {
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
  "referrer-policy": "no-referrer",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
};

/** The response to a request for a file; undefined when there is none. `issuer`: the other origin that pages may fetch from. */
export async function assetResponse(
  { files, issuer }: { files: Assets | undefined; issuer: string | undefined },
  name: string,
  request: Request,
): Promise<Response | undefined> {
  const type = /^[\w-]+\.([a-z]+)$/.exec(name)?.[1];
  const contentType = type === undefined ? undefined : CONTENT_TYPES[type];
  if (!files || contentType === undefined) return undefined;
  const etag = request.headers.get("if-none-match");
  const asset = await files.fetch(
    new Request(new URL(`/${name}`, request.url), { headers: etag ? { "if-none-match": etag } : {} }),
  );
  if (!asset.ok && asset.status !== 304) {
    await asset.body?.cancel();
    return undefined;
  }
  const currentEtag = asset.headers.get("etag");
  // A chunk's name holds a hash of its content.
  const cache = name.startsWith("chunk-") ? "public, max-age=31536000, immutable" : "no-cache";
  // Clients show icons on pages of their own.
  const sharing = contentType.startsWith("image/") && { "cross-origin-resource-policy": "cross-origin" };
  const headers = {
    "content-security-policy": policy(issuer),
    ...SECURITY_HEADERS,
    ...sharing,
    "content-type": contentType,
    "cache-control": cache,
    ...(currentEtag && { etag: currentEtag }),
  };
  return new Response(asset.body, { status: asset.status, headers });
}
