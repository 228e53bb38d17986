import fc from "fast-check";

/**
 * Any character except halves of surrogate pairs, half of the time an ASCII one. The library's unit `binary` has the same
 * characters, but takes seconds to make its table.
 */
export const anyCharacter = fc
  .oneof(fc.nat(0x7f), fc.nat(0x10ffff))
  .map(
    (code) => String.fromCodePoint(code),
    (text) => {
      const code = typeof text === "string" ? text.codePointAt(0) : undefined;
      if (code === undefined || text !== String.fromCodePoint(code)) throw new Error("not one character");
      return code;
    },
  )
  .filter((text) => text.isWellFormed());
