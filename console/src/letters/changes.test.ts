import { expect, test } from 'vitest';
import { undoOf } from './changes';

test('only what gives letters back the status they had is called an undo', () => {
  expect(undoOf('resolve', ['PENDING', 'PENDING'])).toBe('restore');
  expect(undoOf('discard', ['PENDING', 'QUARANTINED'])).toBeNull();
  expect(undoOf('resolve', ['REDRIVEN'])).toBeNull();
  expect(undoOf('quarantine', ['PENDING'])).toBe('release');
  expect(undoOf('restore', ['DISCARDED'])).toBeNull();
});
