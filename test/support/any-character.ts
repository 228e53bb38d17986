import fc from "fast-check";

const SURROGATES = { first: 0xd800, count: 0x800 };
const LAST = 0x10ffff;

/** Any character but halves of surrogate pairs. The library's unit `binary` is the same, and takes seconds to make its table. */
export const anyCharacter = fc.nat(LAST - SURROGATES.count).map(
  (index) => String.fromCodePoint(index < SURROGATES.first ? index : index + SURROGATES.count),
  (text) => {
    const code = typeof text === "string" ? (text.codePointAt(0) ?? -1) : -1;
    const isOther = code >= SURROGATES.first && code < SURROGATES.first + SURROGATES.count;
    if (isOther || text !== String.fromCodePoint(Math.max(code, 0))) throw new Error("not one character");
    return code < SURROGATES.first ? code : code - SURROGATES.count;
  },
);
