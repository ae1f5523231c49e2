import { expect, test } from 'vitest';
import { envelopeOf } from './envelope';

const around = (data: string, metadata = '{}') =>
  `{"message_id":"m","timestamp":"t","version":"1.0","source":"s","queue":"q","data":${data},"metadata":${metadata},"error":null,"retry_count":0}`;

test('data is the text as it was written: digits, spaces and all', () => {
  expect(envelopeOf(around('{ "n": 12345678901234567890, "x": 1.10 }', '{"correlation_id": "c\\u002d1"}'))).toEqual({
    data: '{ "n": 12345678901234567890, "x": 1.10 }',
    correlation: 'c-1',
  });
});

test.each(['', '{}', '[1]', '{"data": 1}', 'not json', '{"a":'.repeat(20_000)])('%.20s is no envelope of ours', (body) => {
  expect(envelopeOf(body)).toBeNull();
});
