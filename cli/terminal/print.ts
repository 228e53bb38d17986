/** Prints text that may come from outside: names and results of jobs, answers of servers, reasons of errors. */

/**
 * Matches what makes a terminal do something else than show the text: control characters but for line breaks and tabs, and
 * characters that change the direction or the order of the text.
 */
const UNPRINTABLE = /(?![\n\t])[\p{Cc}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\u2028\u2029]/gu;

/** The text with those characters as escapes, which JSON reads as the same characters. */
export const printable = (text: string): string =>
  text.replace(UNPRINTABLE, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`);

export const print = (text: string): void => console.log(printable(text));

export const printError = (text: string): void => console.error(printable(text));
