import { written } from '@/shared/filter-completion';

/** What a filter says, term by term, as far as facets need it: the server alone knows the whole language. */
interface Term {
  from: number;
  to: number;
  /** Empty for free text, and for terms that facets leave alone: excluding ones, comparisons. */
  field: string;
  values: string[];
}

const ESCAPED = /["\\*,]/;
const WHOLE_VALUE = /^(?:"((?:[^"\\]|\\.)*)"|([^\s",*<>]+))$/;

function endOf(text: string, from: number): number {
  let quoted = false;
  let at = from;
  for (; at < text.length; at++) {
    const each = text[at] ?? '';
    if (each === '\\' && ESCAPED.test(text[at + 1] ?? '')) at++;
    else if (each === '"') quoted = !quoted;
    else if (!quoted && /\s/.test(each)) break;
  }
  return Math.min(at, text.length);
}

function pieces(text: string): string[] {
  const found: string[] = [];
  let quoted = false;
  let from = 0;
  for (let at = 0; at < text.length; at++) {
    if (text[at] === '\\' && ESCAPED.test(text[at + 1] ?? '')) at++;
    else if (text[at] === '"') quoted = !quoted;
    else if (text[at] === ',' && !quoted) {
      found.push(text.slice(from, at));
      from = at + 1;
    }
  }
  return [...found, text.slice(from)];
}

function valueOf(piece: string): string | null {
  const [, quoted, bare] = WHOLE_VALUE.exec(piece) ?? [];
  return quoted === undefined ? (bare ?? null) : quoted.replace(/\\(["\\*,])/g, '$1');
}

function termFrom(text: string, from: number): Term {
  const to = endOf(text, from);
  const [, field = '', rest = ''] = /^([a-z]+):(.*)$/is.exec(text.slice(from, to)) ?? [];
  const values = field === '' ? [] : pieces(rest).map(valueOf);
  const plain = values.length > 0 && values.every((each) => each !== null);
  return { from, to, field: plain ? field.toLowerCase() : '', values: plain ? values : [] };
}

function termsOf(text: string): Term[] {
  const found: Term[] = [];
  for (let at = 0; at < text.length; ) {
    if (/\s/.test(text[at] ?? '')) at++;
    else {
      const term = termFrom(text, at);
      found.push(term);
      at = term.to;
    }
  }
  return found;
}

const termOf = (text: string, field: string) => termsOf(text).find((each) => each.field === field);

/** Which values of a field a filter asks for. */
export const valuesIn = (text: string, field: string): string[] => termOf(text, field)?.values ?? [];

/** The filter without what it asks of a field. */
export function without(text: string, field: string): string {
  const term = termOf(text, field);
  return term === undefined ? text : replaced(text, term, '');
}

function replaced(text: string, { from, to }: Term, by: string): string {
  return [text.slice(0, from).trimEnd(), by, text.slice(to).trimStart()].filter(Boolean).join(' ');
}

/** The filter with one more value of a field, any of which may match, or with one less. */
export function toggled(text: string, field: string, value: string): string {
  const term = termOf(text, field);
  if (term === undefined) return `${text.trim()} ${field}:${written(value)}`.trim();
  const values = term.values.includes(value) ? term.values.filter((each) => each !== value) : [...term.values, value];
  return replaced(text, term, values.length === 0 ? '' : `${field}:${values.map(written).join(',')}`);
}
