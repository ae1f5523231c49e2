import { expect, test } from 'vitest';
import { toggled, valuesIn } from './filter-terms';

test.each([
  ['', 'queue', 'orders', 'queue:orders'],
  ['age:>2d', 'queue', 'orders', 'age:>2d queue:orders'],
  ['queue:orders age:>2d', 'queue', 'orders', 'age:>2d'],
  ['queue:orders  age:>2d', 'queue', 'payments', 'queue:orders,payments age:>2d'],
  ['a queue:orders,payments b', 'queue', 'orders', 'a queue:payments b'],
  ['queue:"late orders"', 'queue', 'late orders', ''],
  ['', 'queue', 'late "x" orders', 'queue:"late \\"x\\" orders"'],
  ['queue:"late \\"x\\" orders"', 'queue', 'late "x" orders', ''],
  ['', 'type', '-x', 'type:"-x"'],
  ['"queue:orders"', 'queue', 'orders', '"queue:orders" queue:orders'],
  ['-queue:orders', 'queue', 'payments', '-queue:orders queue:payments'],
  ['queue:ord*', 'queue', 'orders', 'queue:ord* queue:orders'],
])('%s with %s %s is %s', (text, field, value, result) => {
  expect(toggled(text, field, value)).toBe(result);
});

test.each(['a,b', 'a*', 'x\\y', 'C:\\jobs\\', '"', 'a b', '', 'é'])('what is put in is found there again: %j', (value) => {
  const filter = toggled('status:PENDING', 'handler', value);
  expect(valuesIn(filter, 'handler')).toEqual([value]);
  expect(toggled(filter, 'handler', value)).toBe('status:PENDING');
});

test('what facets do not understand is left alone', () => {
  expect(valuesIn('-queue:a attempts:>3 queue:b*', 'queue')).toEqual([]);
});
