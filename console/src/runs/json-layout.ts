/** The layout of a JSON text: line breaks put in and taken out without touching a single value. */
import { JsonIndex, NotJson } from '@/shared/json-index';

const DEEPEST = 200;

/** Where it stops being JSON; null: it is JSON. */
export function jsonProblem(text: string): number | null {
  try {
    new JsonIndex(text).step(Number.POSITIVE_INFINITY);
    return null;
  } catch (error) {
    if (error instanceof NotJson) return error.at;
    throw error;
  }
}

export function depthOf(text: string): number {
  let depth = 0;
  let most = 0;
  for (const token of tokensOf(text)) {
    if (token === '{' || token === '[') most = Math.max(most, ++depth);
    else if (token === '}' || token === ']') depth--;
  }
  return most;
}

const TOKEN = /"[^"\\]*(?:\\.[^"\\]*)*"|[{}[\],:]|[^\s{}[\],:"]+/gs;

function* tokensOf(text: string): Generator<string> {
  for (const found of text.matchAll(TOKEN)) yield found[0];
}

/** With a line for each value. */
export function pretty(text: string): string {
  const out: string[] = [];
  let depth = 0;
  let last = '';
  for (const token of tokensOf(text)) {
    const opens = last === '{' || last === '[';
    if (token === '}' || token === ']') {
      depth--;
      if (!opens) out.push('\n', '  '.repeat(depth));
    } else if (opens || last === ',') out.push('\n', '  '.repeat(depth));
    out.push(token);
    if (token === '{' || token === '[') depth++;
    else if (token === ':') out.push(' ');
    last = token;
  }
  return out.join('');
}

/** On one line, with that behind commas and colons. */
export function oneLine(text: string, gap: '' | ' '): string {
  const out: string[] = [];
  for (const token of tokensOf(text)) out.push(token === ',' || token === ':' ? token + gap : token);
  return out.join('');
}

export interface Layout {
  /** The text as it is edited. */
  shown: string;
  /** What was edited, as it is saved. */
  saved: (edited: string) => string;
  /** Whether the two differ. */
  unfolded: boolean;
}

/**
 * A text on one line is edited with line breaks and saved on one line again, so that an edit changes what was edited
 * and no other byte. Any other text is edited as it is.
 */
export function layoutOf(text: string): Layout {
  const asItIs = { shown: text, saved: (edited: string) => edited, unfolded: false };
  if (jsonProblem(text) !== null || depthOf(text) > DEEPEST) return asItIs;
  const gap = (['', ' '] as const).find((each) => oneLine(text, each) === text);
  const shown = gap === undefined ? text : pretty(text);
  if (gap === undefined || shown === text) return asItIs;
  return { shown, saved: (edited) => (jsonProblem(edited) === null ? oneLine(edited, gap) : edited), unfolded: true };
}
