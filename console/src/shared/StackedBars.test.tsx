import { fireEvent, screen } from '@testing-library/react';
import { expect, test, vi } from 'vitest';
import { ceilingOf, placesOf, rangeOf, segmentsOf, ticksOf, type Bar } from './bars';
import { StackedBars } from './StackedBars';
import { expectAccessible, show } from './testing/render';

const hour = (at: number) => new Date(Date.UTC(2026, 0, 1, at)).toISOString();
const bars: Bar[] = [3, 0, 7, 1].map((value, at) => ({ from: hour(at), to: hour(at + 1), values: [value, 1] }));
const series = [
  { id: 'a', name: 'TimeoutError' },
  { id: 'rest', name: '<b>others</b>' },
];

test('the numbers can be read without seeing the chart', async () => {
  const { container } = show(<StackedBars series={series} bars={bars} label="Arrivals by hour" />);
  expect(screen.getByRole('table', { name: 'Arrivals by hour' })).toHaveTextContent('TimeoutError');
  expect(container.querySelector('figure b')).toBeNull();
  await expectAccessible(container);
});

test('a range is chosen by the keyboard', () => {
  const onRange = vi.fn();
  show(<StackedBars series={series} bars={bars} label="Arrivals" onRange={onRange} />);
  const chart = screen.getByRole('application');
  fireEvent.keyDown(chart, { key: 'ArrowLeft' });
  fireEvent.keyDown(chart, { key: 'ArrowLeft', shiftKey: true });
  fireEvent.keyDown(chart, { key: 'Enter' });
  expect(onRange).toHaveBeenCalledWith(hour(2), hour(4));
});

test('a range is dragged, from either side', () => {
  expect(rangeOf(bars, 2, 1)).toEqual({ from: hour(1), to: hour(3) });
  expect(rangeOf([], 0, 0)).toBeNull();
});

test.each([
  [[1], 2],
  [[7, 1], 8],
  [[120], 200],
  [[100_001], 200_000],
])('%j ends at %d', (values, top) => {
  expect(ceilingOf([{ from: '', to: '', values }])).toBeGreaterThanOrEqual(values.reduce((a, b) => a + b));
  expect(ceilingOf([{ from: '', to: '', values }])).toBeLessThanOrEqual(top * 2);
});

test('segments lie on each other', () => {
  expect(segmentsOf([2, 0, 3])).toEqual([{ from: 0, to: 2 }, { from: 2, to: 2 }, { from: 2, to: 5 }]);
});

test('labelled are round hours, or days where there are many', () => {
  const hours = (count: number): Bar[] =>
    Array.from({ length: count }, (_, at) => {
      const from = new Date(2026, 0, 1, 7 + at);
      return { from: from.toISOString(), to: new Date(from.getTime() + 3_600_000).toISOString(), values: [1] };
    });
  const labelled = (bars: Bar[], most: number) => ticksOf(bars, most).map((at) => new Date(bars[at]!.from).getHours());
  expect(labelled(hours(24), 8)).toEqual([9, 12, 15, 18, 21, 0, 3, 6]);
  expect(labelled(hours(168), 8)).toEqual([0, 0, 0, 0, 0, 0, 0]);
  expect(labelled(hours(168), 4)).toHaveLength(4);
  expect(ticksOf([], 4)).toEqual([]);
});

test('a range that holds is marked where it lies, as far as it lies in the chart', () => {
  expect(placesOf(bars, { from: hour(1), to: hour(3) })).toEqual({ start: 1, end: 2 });
  expect(placesOf(bars, { from: hour(-5), to: hour(1) })).toEqual({ start: 0, end: 0 });
  expect(placesOf(bars, { from: hour(7), to: hour(9) })).toBeNull();
});

test('the legend leads to what a colour stands for', () => {
  show(<StackedBars series={series} bars={bars} label="Arrivals" linkOf={({ id }) => (id === 'rest' ? null : `/groups/${id}`)} />);
  expect(screen.getByRole('link', { name: 'TimeoutError' })).toHaveAttribute('href', '/groups/a');
  expect(screen.queryByRole('link', { name: /others/ })).toBeNull();
});

test('the bar under the pointer tells its numbers', () => {
  const { container } = show(<StackedBars series={series} bars={bars} label="Arrivals" />);
  fireEvent(screen.getByRole('img'), new MouseEvent('pointermove', { bubbles: true, clientX: 50 }));
  expect(container.querySelector('figure > div[aria-hidden]')).toHaveTextContent('TimeoutError3<b>others</b>1Total4');
});
