/**
 * Replaces the SDK's platform module for Workers where the SDK is built (`cli/build`). The original includes a validator of
 * JSON Schema, a twentieth of the bundle, for questions that the SDK itself puts to clients. Here jobs ask the questions.
 */
export class DefaultJsonSchemaValidator {
  getValidator(): never {
    throw new Error("This server validates no JSON Schema by the SDK.");
  }
}

/** Used by servers over stdio, which do not exist in a Worker. */
export const process = {};
