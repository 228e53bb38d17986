import fc from "fast-check";

/**
 * Any character but halves of surrogate pairs, and those of ASCII often. The library's unit `binary` has the same characters, and
 * takes seconds to make its table.
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
