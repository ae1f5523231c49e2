import { RawJson } from '@/api/raw-json';
import type { RunAsked } from '@/api/types';

export type Operation = NonNullable<RunAsked['edit']>[number];
export const KINDS = ['set', 'add', 'replace', 'remove', 'rename', 'test', 'set-header', 'remove-header'] as const;
export type OperationKind = (typeof KINDS)[number];

export interface OperationDraft {
  id: number;
  kind: OperationKind;
  /** A place in the payload, or a header's name. */
  place: string;
  /** The new value, or the new key. */
  value: string;
}

export const ofHeader = (kind: OperationKind) => kind === 'set-header' || kind === 'remove-header';
export const hasValue = (kind: OperationKind) => kind !== 'remove' && kind !== 'remove-header';

export type ValueKind = 'number' | 'text' | 'word' | 'object' | 'array';

/** What a typed value is: JSON if it reads as JSON, else text. */
export function kindOfValue(text: string): ValueKind {
  try {
    const value: unknown = JSON.parse(text);
    if (Array.isArray(value)) return 'array';
    if (typeof value === 'number') return 'number';
    if (typeof value === 'string') return 'text';
    return typeof value === 'object' && value !== null ? 'object' : 'word';
  } catch {
    return 'text';
  }
}

/** The JSON text of a typed value, with every digit as it was typed. */
export function valueText(text: string): string {
  try {
    JSON.parse(text);
    return text.trim();
  } catch {
    return JSON.stringify(text);
  }
}

function operationOf({ kind, place, value }: OperationDraft): Operation | null {
  const at = place.trim();
  if (at === '') return null;
  if (kind === 'remove') return { op: kind, path: at };
  if (kind === 'remove-header') return { op: kind, name: at };
  if (kind === 'rename') return value === '' ? null : { op: kind, path: at, to: value };
  const exact = new RawJson(valueText(value));
  return kind === 'set-header' ? { op: kind, name: at, value: exact } : { op: kind, path: at, value: exact };
}

/** All of them as the server takes them; null: one of them says nothing yet. */
export function operationsOf(drafts: readonly OperationDraft[]): Operation[] | null {
  const found = drafts.map(operationOf);
  return found.every((each) => each !== null) ? found : null;
}
