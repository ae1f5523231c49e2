import type { RunJson } from '@/api/types';

export const PARTS = [
  'confirmed',
  'came_back_same',
  'came_back_new',
  'without_word',
  'by_hand',
  'refused',
  'passed_over',
  'released',
  'in_hand',
  'remaining',
] as const;
export type Part = (typeof PARTS)[number];

/** What has become of every letter of a run: the parts add up to all of them. */
export function figuresOf({ progress, remaining }: Pick<RunJson, 'progress' | 'remaining'>): Record<Part, number> {
  const { sent, confirmed, came_back_same, came_back_new, by_hand, refused, passed_over, released, in_hand } = progress;
  const without_word = Math.max(0, sent - confirmed - came_back_same - came_back_new - by_hand);
  return { confirmed, came_back_same, came_back_new, without_word, by_hand, refused, passed_over, released, in_hand, remaining };
}

export const cameBack = ({ progress }: Pick<RunJson, 'progress'>) => progress.came_back_same + progress.came_back_new;

/** Letters that are still to be sent. */
export const unsentOf = ({ remaining, progress }: Pick<RunJson, 'remaining' | 'progress'>) => remaining + progress.in_hand;

export type StepState = 'good' | 'sending' | 'waiting' | 'failed' | 'later';

/** The canary's steps, and behind them the rest. */
export function stepsOf(run: Pick<RunJson, 'canary' | 'stage' | 'status' | 'progress' | 'total'>): { upTo: number | null; state: StepState }[] {
  const { steps } = run.canary;
  const stopped = run.status === 'STOPPED' && run.stage < steps.length;
  const stateOf = (at: number): StepState => {
    if (at < run.stage) return 'good';
    if (at > run.stage) return 'later';
    if (stopped) return 'failed';
    const upTo = at < steps.length ? Math.min(steps[at] ?? 0, run.total) : run.total;
    if (run.progress.sent >= upTo) return at === steps.length ? 'good' : run.status === 'DONE' ? 'good' : 'waiting';
    return run.progress.taken === 0 && run.status !== 'RUNNING' ? 'later' : 'sending';
  };
  return [...steps.map((upTo, at) => ({ upTo, state: stateOf(at) })), { upTo: null, state: stateOf(steps.length) }];
}
