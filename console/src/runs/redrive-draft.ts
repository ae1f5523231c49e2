import { selectionOf, type Chosen } from '@/api/letter-lists';
import type { RunAsked } from '@/api/types';
import { operationsOf, type OperationDraft } from './operations';

export interface Usual {
  rate: number | null;
  canary: { steps: number[]; wait: number; at_most_back: number };
  brakes: { came_back: number | null; window: number; publish_errors: number | null; backlog: number | null };
}

/** What is typed into the dialog, as it is typed. */
export interface Draft {
  target: 'own' | 'other' | 'origin';
  queue: string;
  rate: string;
  limit: string;
  canary: boolean;
  steps: string;
  wait: string;
  back: string;
  quarantined: boolean;
  editing: boolean;
  operations: OperationDraft[];
  sensitive: boolean;
  schema: string;
}

const FIRST_STEPS = '1, 10';

export function draftOf(usual: Usual): Draft {
  return {
    target: 'own',
    queue: '',
    rate: '',
    limit: '',
    canary: usual.canary.steps.length > 0,
    steps: usual.canary.steps.length > 0 ? usual.canary.steps.join(', ') : FIRST_STEPS,
    wait: String(usual.canary.wait),
    back: String(Math.round(usual.canary.at_most_back * 1000) / 10),
    quarantined: false,
    editing: false,
    operations: [],
    sensitive: false,
    schema: '',
  };
}

export function numberOf(text: string): number | null {
  const found = text.trim().replace(',', '.');
  return /^\d+(\.\d+)?$/.test(found) ? Number(found) : null;
}

/** Rising whole numbers; null: they are none. */
export function stepsOf(text: string): number[] | null {
  const parts = text.split(/[\s,;]+/).filter(Boolean);
  if (parts.length === 0 || !parts.every((each) => /^\d{1,9}$/.test(each))) return null;
  const steps = parts.map(Number);
  return steps.every((each, at) => each > (at === 0 ? 0 : (steps[at - 1] ?? 0))) ? steps : null;
}

export type Field = 'queue' | 'rate' | 'limit' | 'steps' | 'wait' | 'back' | 'operations' | 'schema';

/** What cannot be asked for as it stands. The reason is not among them: it is looked at when somebody wants to go on. */
export function wrongIn(draft: Draft): Set<Field> {
  const wrong = new Set<Field>();
  if (draft.target === 'other' && draft.queue.trim() === '') wrong.add('queue');
  if (draft.rate.trim() !== '' && !numberOf(draft.rate)) wrong.add('rate');
  if (draft.limit.trim() !== '' && !/^[1-9]\d{0,8}$/.test(draft.limit.trim())) wrong.add('limit');
  if (draft.canary) {
    if (stepsOf(draft.steps) === null) wrong.add('steps');
    if (numberOf(draft.wait) === null) wrong.add('wait');
    const back = numberOf(draft.back);
    if (back === null || back > 100) wrong.add('back');
  }
  if (draft.editing && operationsOf(draft.operations) === null) wrong.add('operations');
  if (draft.editing && draft.schema.trim() !== '' && !isJson(draft.schema)) wrong.add('schema');
  return wrong;
}

export function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** The request, without its reason: what the preview and the plan depend on. */
export function askedOf(chosen: Chosen, draft: Draft, usual: Usual): RunAsked {
  const steps = stepsOf(draft.steps);
  const canary =
    draft.canary && steps !== null
      ? { steps, wait: numberOf(draft.wait) ?? usual.canary.wait, at_most_back: (numberOf(draft.back) ?? 0) / 100 }
      : { ...usual.canary, steps: [] };
  return {
    selection: selectionOf(chosen),
    at_most: draft.limit.trim() === '' ? null : Number(draft.limit),
    target: draft.target === 'other' ? draft.queue.trim() : null,
    to_origin: draft.target === 'origin',
    quarantined: draft.quarantined,
    edit: draft.editing ? (operationsOf(draft.operations) ?? []) : [],
    allow_sensitive: draft.editing && draft.sensitive,
    schema: draft.editing ? draft.schema.trim() : '',
    rate: numberOf(draft.rate),
    canary,
  };
}
