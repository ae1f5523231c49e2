import type { FailureGroup, GroupNotes, Verdict } from '@/api/types';
import { isVerdict, webAddress } from './state';

/** What people say about a group, as it is written into fields. */
export interface Draft {
  owner: string;
  verdict: string;
  note: string;
  runbook: string;
}

export const FIELDS = ['owner', 'verdict', 'note', 'runbook'] as const;
export const LONGEST = { owner: 256, note: 8192, runbook: 2048 };

export function draftOf(group: Pick<FailureGroup, (typeof FIELDS)[number]>): Draft {
  return { owner: group.owner ?? '', verdict: group.verdict ?? '', note: group.note ?? '', runbook: group.runbook ?? '' };
}

/** Only what was changed is sent, so that what others have written beside it stays. */
export function changesOf(before: Draft, after: Draft): GroupNotes {
  const changes: GroupNotes = {};
  for (const name of ['owner', 'note', 'runbook'] as const) {
    if (after[name].trim() !== before[name]) changes[name] = after[name].trim() || null;
  }
  if (after.verdict !== before.verdict) changes.verdict = isVerdict(after.verdict) ? (after.verdict satisfies Verdict) : null;
  return changes;
}

/** Fields that both I and somebody else have changed since I began, to something else. */
export function conflictsOf(base: Draft, mine: Draft, theirs: Draft): (keyof Draft)[] {
  return FIELDS.filter((name) => mine[name] !== base[name] && theirs[name] !== base[name] && theirs[name] !== mine[name]);
}

/** What I have changed, on top of theirs; where both have changed something, mine or theirs. */
export function rebasedOn(theirs: Draft, base: Draft, mine: Draft, mineWins: boolean): Draft {
  const clashes = conflictsOf(base, mine, theirs);
  const kept = FIELDS.filter((name) => mine[name] !== base[name] && (mineWins || !clashes.includes(name)));
  return { ...theirs, ...Object.fromEntries(kept.map((name) => [name, mine[name]])) };
}

export const isRunbookFine = (text: string): boolean => text.trim() === '' || webAddress(text) !== null;
