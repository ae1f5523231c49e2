import { expect, test } from 'vitest';
import { headerTexts } from './letter-to-edit';

test('header values are the text that the server wrote', () => {
  const answer = '{"headers": 1, "message": {"body": "[[\\"", "headers": [["a", 1.0], ["b\\u0041", 12345678901234567890], ["c", {"x": [1, 2]}], ["a", "twice"]]}}';
  expect(headerTexts(answer)).toEqual([
    ['a', '1.0'],
    ['bA', '12345678901234567890'],
    ['c', '{"x": [1, 2]}'],
    ['a', '"twice"'],
  ]);
});

test('no headers are none', () => {
  expect(headerTexts('{"message": {"headers": []}}')).toEqual([]);
});
