import { expect, test } from 'vitest';
import { RawJson, writtenBody } from './raw-json';

test('what is given as text stands in the body as it was written', () => {
  const body = { a: new RawJson('{"n": 1.10, "big": 12345678901234567890}'), b: [new RawJson('1e400')], c: 'plain' };
  expect(writtenBody(body)).toBe('{"a":{"n": 1.10, "big": 12345678901234567890},"b":[1e400],"c":"plain"}');
});

test('bigints are exact, and everything else is JSON', () => {
  expect(writtenBody({ n: 12345678901234567890n, s: '"$1"', nothing: undefined, no: null })).toBe(
    '{"n":12345678901234567890,"s":"\\"$1\\"","no":null}',
  );
});
