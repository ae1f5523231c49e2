import { expect, test } from 'vitest';
import { exactJson, headerText } from './header-text';

test.each([
  ['text', { text: 'text', type: 'text' }],
  [9007199254740993n, { text: '9007199254740993', type: 'number' }],
  [{ int: '-0x1000000000000000000' }, { text: '-4722366482869645213696', type: 'number' }],
  [{ float: 'nan' }, { text: 'nan', type: 'number' }],
  [{ base64: 'w6k=' }, { text: 'é', type: 'bytes' }],
  [{ base64: 'AP8=' }, { text: 'base64 AP8=', type: 'bytes' }],
  [{ time: '2026-03-01T12:00:00+00:00' }, { text: '2026-03-01T12:00:00+00:00', type: 'time' }],
  [null, { text: 'null', type: 'word' }],
  [[1, { a: 9007199254740993n }], { text: '[1,{"a":9007199254740993}]', type: 'table' }],
  [{ base64: 'a', b: 1 }, { text: '{"base64":"a","b":1}', type: 'table' }],
])('value %#', (value, told) => {
  expect(headerText(value)).toEqual(told);
});

test('what is copied has the integers that were told', () => {
  const headers = [['n', 9007199254740993n], ['t', '"12345678901234567890"']];
  expect(exactJson({ headers })).toBe('{"headers":[["n",9007199254740993],["t","\\"12345678901234567890\\""]]}');
});
