import { expect, test } from 'vitest';
import { momentsOf, type Arrivals } from '@/api/insights';
import { ApiProblem } from '@/api/problem';
import { chartOf } from './ArrivalsChart';
import { calm } from './calm';
import { sorted } from './OutcomeBar';
import { shownOf } from './shown';
import { rangeIn } from './span';
import { aGroup } from '@/groups/testing-groups';

test('the last hours are whole ones, and so are days where days are counted', () => {
  const now = Date.parse('2026-11-16T19:20:00Z');
  expect(momentsOf({ hours: 24 }, now)).toEqual({ since: '2026-11-15T20:00:00.000Z' });
  expect(momentsOf({ hours: 168 }, now)).toEqual({ since: '2026-11-09T20:00:00.000Z' });
  expect(momentsOf({ hours: 720 }, now)).toEqual({ since: '2026-10-18T00:00:00.000Z' });
  expect(momentsOf({ from: 'a', to: 'b' }, now)).toEqual({ since: 'a', until: 'b' });
});

test('a range is two moments in their order', () => {
  expect(rangeIn('2026-11-16T19:00:00Z', '2026-11-16T20:00:00+01:00')).toBeNull();
  expect(rangeIn('2026-11-16T19:00:00Z', '2026-11-16T20:00:00Z')).not.toBeNull();
  expect(rangeIn('', 'x')).toBeNull();
});

test('the others are a series of their own, if there are any', () => {
  const arrivals: Arrivals = {
    step_hours: 24,
    starts: ['2026-11-15T00:00:00Z', '2026-11-16T00:00:00Z'],
    groups: [{ group_id: 'a', title: 'x.Oops: no', queue: 'q', letters: 3, counts: [1, 2] }],
    others: [0, 4],
    total: [1, 6],
  };
  const { series, bars } = chartOf(arrivals, 'Others');
  expect(series).toEqual([{ id: 'a', name: 'Oops: no' }, { id: 'rest', name: 'Others' }]);
  expect(bars[1]).toEqual({ from: '2026-11-16T00:00:00Z', to: '2026-11-17T00:00:00.000Z', values: [2, 4] });
  expect(chartOf({ ...arrivals, others: [0, 0] }, 'Others').series).toHaveLength(1);
});

test('endings stand in a fixed order, and none is lost', () => {
  expect(sorted({ refused: 1, odd: 2, confirmed: 3, assumed: 0 })).toEqual([
    ['confirmed', 3],
    ['refused', 1],
    ['odd', 2],
  ]);
});

test('a server that is away is told of once; other problems, and parts that have nothing to show, tell it themselves', () => {
  const query = { data: [1] as number[] | undefined, error: new ApiProblem({ status: 503 }), isPending: false, refetch: () => null };
  expect(calm(query).error).toBeNull();
  expect(calm({ ...query, data: undefined }).error).not.toBeNull();
  expect(calm({ ...query, error: new ApiProblem({ status: 500 }) }).error).not.toBeNull();
});

test('a flood of small new groups does not hide the largest', () => {
  const seen = Array.from({ length: 40 }, (_, at) => ({ group: aGroup(`g${at}`), letters: at === 35 ? 900 : 1, appearance: 'new' as const, why: null }));
  const shown = shownOf(seen).map((each) => each.group.id);
  expect(shown).toHaveLength(15);
  expect(shown.slice(0, 9)).toEqual(['g0', 'g1', 'g2', 'g3', 'g4', 'g5', 'g6', 'g7', 'g8']);
  expect(shown).toContain('g35');
});
