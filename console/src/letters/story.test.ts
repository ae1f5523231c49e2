import { expect, test } from 'vitest';
import type { Happening } from '@/api/types';
import { folded, storyOf } from './story';
import { aFailure, aLetter } from './testing-letters';

const RUN = '01a1e5cd-ea77-74e9-9178-db9feecd06dd';
const at = (minute: number) => `2026-03-01T13:${String(minute).padStart(2, '0')}:00+00:00`;
const line = (minute: number, what: string, more: Partial<Happening> = {}): Happening => ({
  at: at(minute), by: 'ann', what, before: '', after: '', reason: '', ...more,
});

test('a life in one row: sent, attempts, dead-lettered, edited, redriven, came back', () => {
  const plain = aLetter();
  const letter = aLetter({
    failures: [...plain.failures, aFailure(1, at(4), { generation: 2 })],
    revisions: [...plain.revisions, { ...plain.revisions[0]!, number: 1, at: at(1), by: 'bob', reason: 'wrong id' }],
    history: [...plain.history, line(1, 'edited', { by: 'bob' }), line(2, 'claimed', { by: 'serve host 7', reason: `run ${RUN}` }), line(3, 'sent'), line(4, 'came back', { by: 'consumer' })],
  });
  const redrive = {
    redrive_id: 'r', run_id: RUN, by: 'ann', generation: 1, revision: 1, target: 'orders', claimed_at: at(2),
    sent_at: at(3), outcome: 'came back', outcome_at: at(4), returned_as: 2,
  };
  const story = storyOf(letter, [redrive]);
  expect(story.map((each) => each.kind)).toEqual(['sent', 'attempt', 'attempt', 'happened', 'edited', 'redriven', 'attempt', 'happened']);
  expect(story[5]).toMatchObject({ by: 'ann', sentAt: at(3), run: RUN, reason: '' });
  expect(storyOf(letter)[5]).toMatchObject({ by: 'serve host 7', run: RUN });
});

test('a redrive that was taken and not sent stays two lines', () => {
  const story = storyOf(aLetter({ history: [line(1, 'claimed'), line(2, 'unclaimed')] }));
  expect(story.slice(-2).map((each) => each.kind)).toEqual(['happened', 'happened']);
});

test('many attempts are folded in the middle until somebody opens them', () => {
  const failures = Array.from({ length: 500 }, (_, number) => aFailure(number + 1, at(number % 60)));
  const story = storyOf(aLetter({ failures, history: [] }));
  const parts = folded(story, new Set());
  expect(parts).toHaveLength(1 + 3 + 1 + 3);
  const fold = parts.find((each) => each.kind === 'folded')!;
  expect(fold.events).toHaveLength(494);
  expect(folded(story, new Set([fold.key]))).toHaveLength(501);
});
