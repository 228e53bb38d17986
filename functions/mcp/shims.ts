/**
 * What the SDK takes from its platform, in place of its own for Workers, where it is built (`cli/build`). Its own brings a
 * validator of JSON Schema, a twentieth of the bundle, for questions that the SDK puts to clients itself: here jobs ask.
 */
export class DefaultJsonSchemaValidator {
  getValidator(): never {
    throw new Error("This server validates no JSON Schema by the SDK.");
  }
}

/** For servers over stdio, which none is in a Worker. */
export const process = {};
