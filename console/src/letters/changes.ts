import type { Change } from '@/api/letters';
import type { Status } from '@/api/types';

/** What people decide about letters here. Purging is for the command line: it cannot be undone. */
export const DECISIONS = ['resolve', 'discard', 'restore', 'quarantine', 'release'] as const;
export type DecisionName = (typeof DECISIONS)[number];

/** In which status a letter may be changed so: the same table as the server's own. */
export const SOURCES: Record<DecisionName | 'redrive' | 'edit', readonly Status[]> = {
  redrive: ['PENDING'],
  edit: ['PENDING'],
  resolve: ['PENDING', 'REDRIVEN', 'QUARANTINED'],
  discard: ['PENDING', 'QUARANTINED'],
  restore: ['DISCARDED', 'RESOLVED'],
  quarantine: ['PENDING'],
  release: ['QUARANTINED'],
};

export const allows = (name: keyof typeof SOURCES, status: Status) => SOURCES[name].includes(status);

const BACK: Partial<Record<DecisionName, { from: Status; by: Change }>> = {
  resolve: { from: 'PENDING', by: 'restore' },
  discard: { from: 'PENDING', by: 'restore' },
  quarantine: { from: 'PENDING', by: 'release' },
  release: { from: 'QUARANTINED', by: 'quarantine' },
};

/** What makes letters again what they were; null: nothing does for all of them. */
export function undoOf(name: DecisionName, were: readonly Status[]): Change | null {
  const back = BACK[name];
  return back !== undefined && were.every((each) => each === back.from) ? back.by : null;
}
