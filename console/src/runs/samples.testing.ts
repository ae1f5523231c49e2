/** Runs and previews for tests that need one and not its details. */
import type { PreviewJson, RunJson } from '@/api/types';
import type { Usual } from './redrive-draft';

export const USUAL: Usual = {
  rate: 50,
  canary: { steps: [], wait: 300, at_most_back: 0.2 },
  brakes: { came_back: 0.5, window: 100, publish_errors: 5, backlog: null },
};

export function aPreview(more: Partial<PreviewJson> = {}): PreviewJson {
  return {
    count: 1204,
    exact: true,
    by_queue: { orders: 1204 },
    by_group: [{ id: 'g1', title: 'NoCustomer: order <n>', count: 1204 }],
    groups: 1,
    spread_over: 1204,
    by_target: { orders: 1204 },
    oldest: '2026-11-16T10:00:00Z',
    newest: '2026-11-16T11:00:00Z',
    sample: [],
    checks: [
      { name: 'letters', level: 'ok', text: '1,204 letters will be sent' },
      { name: 'earlier redrives', level: 'warn', text: 'last time 40 % came through: begin with a canary' },
    ],
    worst: 'warn',
    digest: 'd',
    samples: [],
    ...more,
  };
}

const NOTHING: RunJson['progress'] = {
  taken: 0,
  in_hand: 0,
  sent: 0,
  confirmed: 0,
  came_back_same: 0,
  came_back_new: 0,
  refused: 0,
  released: 0,
  by_hand: 0,
  last_sent_at: null,
  passed_over: 0,
};

export function aRun(more: Partial<Omit<RunJson, 'progress'>> & { progress?: Partial<RunJson['progress']> } = {}): RunJson {
  const { progress, ...rest } = more;
  return {
    id: '01a1e3a2-cc44-767c-9490-94b9953e6253',
    status: 'RUNNING',
    why: '',
    requested_by: 'bob',
    created_at: '2026-11-16T10:00:00Z',
    changed_at: '2026-11-16T10:00:00Z',
    ended_at: null,
    total: 100,
    remaining: 100 - (progress?.taken ?? 0),
    exhausted: false,
    stage: 0,
    approval: null,
    progress: { ...NOTHING, ...progress },
    summary: '',
    estimated_end: null,
    in_doubt: 0,
    selection: { q: 'queue:orders', ids: null, status: null, queue: null, handler: null, type: null, group: null, created_before: null, created_after: null },
    at_most: null,
    target: null,
    to_origin: false,
    quarantined: false,
    edit: [],
    allow_sensitive: false,
    schema: '',
    rate: 50,
    ceilings: {},
    canary: { steps: [], wait: 300, at_most_back: 0.2 },
    brakes: USUAL.brakes,
    reason: 'the fix is out',
    rule: '',
    ...rest,
  };
}
