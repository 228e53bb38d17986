/** The module `resonate.js` beside this file, which the build makes of `server/object/`. */
export class ObjectServer {
  constructor(state: object, env: object);
  fetch(request: Request): Promise<Response>;
  alarm(): Promise<void>;
}
