/** The module `runner.js` beside this file, which the build makes of `worker/runner/` and the deployment's durable functions. */
export function createRunner(env: object): { fetch(request: Request): Promise<Response> };
