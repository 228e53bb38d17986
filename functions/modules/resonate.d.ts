/** `resonate.js` beside this file, built from `server/object/`. */
export class ObjectServer {
  constructor(state: object, env: object);
  fetch(request: Request): Promise<Response>;
  alarm(): Promise<void>;
}
