/** `runner.js` beside this file, built from `worker/runner/` and the deployment's durable functions. */
export function createRunner(env: object): { fetch(request: Request): Promise<Response> };
