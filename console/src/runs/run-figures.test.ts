import { expect, test } from 'vitest';
import { figuresOf, stepsOf } from './run-figures';
import { aRun } from './samples.testing';

test('the parts of a run are all of its letters', () => {
  const run = aRun({ total: 100, remaining: 40, progress: { taken: 60, sent: 55, confirmed: 30, came_back_same: 5, came_back_new: 2, by_hand: 1, in_hand: 2, refused: 2, released: 1 } });
  const figures = figuresOf(run);
  expect(figures.without_word).toBe(17);
  expect(Object.values(figures).reduce((sum, each) => sum + each, 0)).toBe(100);
});

const canary = { steps: [1, 5, 50], wait: 300, at_most_back: 0.2 };
const states = (run: Parameters<typeof stepsOf>[0]) => stepsOf(run).map((each) => each.state);

test('a canary is told step by step', () => {
  expect(states(aRun({ canary, stage: 0, progress: {} }))).toEqual(['sending', 'later', 'later', 'later']);
  expect(states(aRun({ canary, stage: 1, progress: { taken: 5, sent: 5 } }))).toEqual(['good', 'waiting', 'later', 'later']);
  expect(states(aRun({ canary, stage: 1, status: 'STOPPED', progress: { taken: 5, sent: 5, came_back_same: 3 } }))).toEqual(['good', 'failed', 'later', 'later']);
  expect(states(aRun({ canary, stage: 3, progress: { taken: 70, sent: 70 } }))).toEqual(['good', 'good', 'good', 'sending']);
  expect(states(aRun({ canary, stage: 3, status: 'DONE', remaining: 0, progress: { taken: 100, sent: 100 } }))).toEqual(['good', 'good', 'good', 'good']);
  expect(states(aRun({ canary, stage: 0, status: 'AWAITING_APPROVAL' }))).toEqual(['later', 'later', 'later', 'later']);
});
