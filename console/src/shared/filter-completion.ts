import { known } from './known';

/** What could be written next in a filter. The same rules as the server's own: fields, comparisons, known values. */

export interface Suggestion {
  /** To be put in place of what stands between `from` and `to`. */
  text: string;
  from: number;
  to: number;
  /** For people: what it means. */
  what: string;
}

/** What stands at the cursor: a field's name, or a value behind a colon. */
export interface Begun {
  kind: 'name' | 'value';
  /** The field, if a value is being written. */
  field: string;
  /** As far as it is written. */
  text: string;
  from: number;
  to: number;
}

const AGES = ['1h', '1d', '7d'];
const COMPARISONS = ['>', '<', '>=', '<='];
const CONDITIONS: Record<string, string[]> = {
  age: [...AGES.map((age) => `>${age}`), ...AGES.map((age) => `<${age}`)],
  before: AGES,
  after: AGES,
  created: COMPARISONS,
  changed: ['<10m', '<1h', '<1d'],
  attempts: COMPARISONS,
  generation: ['>1'],
  revision: ['>0'],
};
const BUILT_IN: Record<string, string[]> = {
  status: ['PENDING', 'QUARANTINED', 'REDRIVING', 'REDRIVEN', 'RESOLVED', 'DISCARDED'],
  kind: ['transient', 'permanent', 'critical'],
};
const MOST = 12;

interface Term {
  start: number;
  colon: number | null;
  value: number;
  quoted: boolean;
}

function termAt(text: string, cursor: number): Term {
  let term: Term = { start: 0, colon: null, value: 0, quoted: false };
  for (let at = 0; at < cursor; at++) {
    const each = text[at] ?? '';
    if (each === '\\' && /["\\*,]/.test(text[at + 1] ?? '')) at++;
    else if (each === '"') term = { ...term, quoted: !term.quoted };
    else if (term.quoted) continue;
    else if (/\s/.test(each)) term = { start: at + 1, colon: null, value: 0, quoted: false };
    else if (each === '-' && at === term.start) term = { ...term, start: at + 1 };
    else if (each === ':' && term.colon === null) term = { ...term, colon: at, value: at + 1 };
    else if (each === ',' && term.colon !== null) term = { ...term, value: at + 1 };
  }
  return term;
}

function endFrom(text: string, at: number, stops: RegExp): number {
  let end = at;
  while (end < text.length && !stops.test(text[end] ?? '')) end++;
  return end;
}

/** null: inside of a phrase, where nothing is to be suggested. */
export function begunAt(text: string, cursor: number): Begun | null {
  const term = termAt(text, cursor);
  if (term.colon === null) {
    if (term.quoted) return null;
    const end = endFrom(text, cursor, /[\s:]/);
    const to = text[end] === ':' ? end + 1 : end;
    return { kind: 'name', field: '', text: text.slice(term.start, cursor), from: term.start, to };
  }
  const field = text.slice(term.start, term.colon).toLowerCase();
  const written = text.slice(term.value, cursor).replace(/^"/, '');
  const to = term.quoted ? cursor : endFrom(text, cursor, /[\s,]/);
  return { kind: 'value', field, text: written, from: term.value, to };
}

/** A value as a filter has to write it. */
export function written(value: string): string {
  return /^[^\s",*\\<>-][^\s",*\\]*$/.test(value) ? value : `"${value.replace(/["\\]/g, '\\$&')}"`;
}

export function namesFor(begun: Begun, fields: Record<string, string>): Suggestion[] {
  return Object.entries(fields)
    .filter(([name]) => name.startsWith(begun.text.toLowerCase()))
    .slice(0, 2 * MOST)
    .map(([name, what]) => ({
      text: name === 'header' || name === 'data' ? `${name}.` : `${name}:`,
      from: begun.from,
      to: begun.to,
      what,
    }));
}

/** `told` are values that the server knows of the field. */
export function valuesFor(begun: Begun, told: readonly string[]): Suggestion[] {
  const conditions = known(CONDITIONS, begun.field);
  if (conditions !== undefined) {
    return conditions
      .filter((each) => each.startsWith(begun.text) && each !== begun.text)
      .map((each) => ({ text: each, from: begun.from, to: begun.to, what: '' }));
  }
  const values = known(BUILT_IN, begun.field) ?? [...new Set(told)];
  const sought = begun.text.toLowerCase();
  const beginning = values.filter((each) => each.toLowerCase().startsWith(sought));
  const inside = values.filter((each) => each.toLowerCase().includes(sought) && !beginning.includes(each));
  return [...beginning, ...inside]
    .slice(0, MOST)
    .map((each) => ({ text: written(each), from: begun.from, to: begun.to, what: '' }));
}
