/**
 * Characters that change how text around them looks, or that cannot be seen: C0 (but line feed and tab), DEL, C1,
 * soft hyphen, bidi controls, zero-width ones, line and paragraph separators, tags, noncharacters of the BMP, and
 * halves of surrogate pairs.
 */
const HIDDEN =
  // eslint-disable-next-line no-control-regex -- those are what it is about
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u115f\u1160\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff0-\uffff]|[\ufe00-\ufe0e]|[\u{e0000}-\u{e0fff}]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/gu;

export function escapeOf(character: string): string {
  const code = character.codePointAt(0) ?? 0;
  if (code < 0x100) return `\\x${code.toString(16).padStart(2, '0')}`;
  return code > 0xffff ? `\\u{${code.toString(16)}}` : `\\u${code.toString(16).padStart(4, '0')}`;
}

/** The text with escapes for what would hide or turn something: for titles, labels and other attributes. */
export function visible(text: string): string {
  return text.replace(HIDDEN, escapeOf);
}

export interface Part {
  text: string;
  hidden: boolean;
}

/** Plain pieces and escapes, in their order; one piece if there are more than `most` escapes. */
export function partsOf(text: string, most: number): Part[] {
  const parts: Part[] = [];
  let end = 0;
  for (const found of text.matchAll(HIDDEN)) {
    if (parts.length > 2 * most) return [{ text: visible(text), hidden: false }];
    if (found.index > end) parts.push({ text: text.slice(end, found.index), hidden: false });
    parts.push({ text: escapeOf(found[0]), hidden: true });
    end = found.index + found[0].length;
  }
  if (end < text.length) parts.push({ text: text.slice(end), hidden: false });
  return parts;
}
