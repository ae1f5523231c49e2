import { expect, test } from 'vitest';
import { RawJson } from '@/api/raw-json';
import { bytesOfBase64, bytesOfHex, base64Of, folded, hexOf } from './byte-text';
import { headerClass } from './header-class';
import { headersDiffer, rowsOf, typedOf } from './header-rows';
import { depthOf, jsonProblem, layoutOf, oneLine, pretty } from './json-layout';
import { operationLine } from './operation-line';
import { kindOfValue, operationsOf, valueText } from './operations';
import { placeOf } from './payload-place';
import { samePerson } from './people';

const ENVELOPE = '{"message_id":"m","timestamp":"t","version":"1.0","source":"s","queue":"q","data":{"n":1.10},"metadata":{},"error":null,"retry_count":0}';

test.each([
  '{"a":1.10,"b":[12345678901234567890,"x, y: {z}"],"c":{},"d":[],"e":"\\"\\\\"}',
  '{"a": 1, "b": [true, null], "c": "é\\u00e9"}',
  '[]',
  '"just text"',
  '{"a":{"b":{"c":[[],{}]}}}',
])('line breaks are put in and taken out without a trace: %s', (text) => {
  const layout = layoutOf(text);
  expect(layout.saved(layout.shown)).toBe(text);
  expect(jsonProblem(layout.shown)).toBeNull();
});

test('a text with a layout of its own is edited as it is', () => {
  const text = '{\n\t"a" : 1\r\n}';
  expect(layoutOf(text)).toMatchObject({ shown: text, unfolded: false });
  expect(layoutOf('not json')).toMatchObject({ shown: 'not json', unfolded: false });
});

test('pretty texts have a line for each value', () => {
  expect(pretty('{"a":[1,{"b":2}],"c":{}}')).toBe('{\n  "a": [\n    1,\n    {\n      "b": 2\n    }\n  ],\n  "c": {}\n}');
  expect(oneLine('{ "a" : [ 1 , 2 ] }', ' ')).toBe('{"a": [1, 2]}');
});

test('20,000 levels are no problem', () => {
  const deep = '['.repeat(20_000) + ']'.repeat(20_000);
  expect(depthOf(deep)).toBe(20_000);
  expect(layoutOf(deep).shown).toBe(deep);
});

test('the data of an envelope is found, and the parts are the whole', () => {
  const place = placeOf(ENVELOPE);
  expect(place).toMatchObject({ of: 'data', text: '{"n":1.10}' });
  expect(place.before + place.text + place.after).toBe(ENVELOPE);
});

test.each([
  ENVELOPE.replace('"queue":"q",', ''),
  ENVELOPE.replace('"data":', '"data":1,"data":'),
  ENVELOPE.replace('"source":"s"', '"source":5'),
  '{"data": 1}',
  'data',
  ' ' + ENVELOPE,
])('anything else is edited whole: %s', (body) => {
  expect(placeOf(body)).toEqual({ of: 'whole', before: '', text: body, after: '' });
});

test('bytes are the same, as hex and as base64', () => {
  const bytes = Uint8Array.from({ length: 300 }, (_, at) => at % 256);
  expect(bytesOfHex(hexOf(bytes))).toEqual(bytes);
  expect(bytesOfBase64(folded(base64Of(bytes)))).toEqual(bytes);
  expect([bytesOfHex('f'), bytesOfHex('fg'), bytesOfBase64('abc'), bytesOfBase64('a$==')]).toEqual([null, null, null, null]);
});

test('headers that were not touched are the same', () => {
  const headers: [string, string][] = [['a', '1.0'], ['b', '"17"'], ['c', '"plain \\u00e9"'], ['d', '{"base64": "AP8="}']];
  const rows = rowsOf(headers);
  expect(rows.map((each) => each.value)).toEqual(['1.0', '"17"', 'plain é', '{"base64": "AP8="}']);
  expect(headersDiffer(headers, rows)).toBe(false);
  expect(headersDiffer(headers, rows.slice(1))).toBe(true);
  expect(rows.map((each) => valueText(each.value))).toEqual(['1.0', '"17"', '"plain é"', '{"base64": "AP8="}']);
  expect(typedOf('"true"')).toBe('"true"');
});

test('a value is JSON if it reads as JSON, else text', () => {
  expect(['17', 'true', '"17"', '[1]', '{}', 'Ada', ''].map(kindOfValue)).toEqual(['number', 'word', 'text', 'array', 'object', 'text', 'text']);
  expect(['12345678901234567890', '1.10', 'Ada', ''].map(valueText)).toEqual(['12345678901234567890', '1.10', '"Ada"', '""']);
});

test('operations are what the server takes, and none while one says nothing', () => {
  const draft = { id: 1, kind: 'set' as const, place: 'a.b', value: '1.10' };
  expect(operationsOf([draft, { ...draft, kind: 'remove-header', place: 'x' }])).toEqual([
    { op: 'set', path: 'a.b', value: new RawJson('1.10') },
    { op: 'remove-header', name: 'x' },
  ]);
  expect(operationsOf([{ ...draft, place: ' ' }])).toBeNull();
  expect(operationsOf([{ ...draft, kind: 'rename', value: '' }])).toBeNull();
});

test('operations are told on a line, without what lets somebody in', () => {
  expect(operationLine({ op: 'set', path: 'n', value: { big: 12345678901234567890n } }, '(hidden)')).toBe('set n = {"big": 12345678901234567890}');
  expect(operationLine({ op: 'set-header', name: 'X-Api-Key', value: 'abc' }, '(hidden)')).toBe('set-header X-Api-Key = (hidden)');
});

test.each([
  ['message-id', 'locked'],
  ['NServiceBus.MessageId', 'locked'],
  ['x-redrive-ticket', 'locked'],
  ['x-death', 'locked'],
  ['Authorization', 'sensitive'],
  ['x-api-key', 'sensitive'],
  ['tenant', 'free'],
  ['identity', 'free'],
])('the header %s is %s', (name, kind) => {
  expect(headerClass(name)).toBe(kind);
});

test('nobody becomes a second person by another spelling or a token', () => {
  expect(samePerson('ann', 'Ann')).toBe(true);
  expect(samePerson('ann (said by root)', 'ann')).toBe(true);
  expect(samePerson('token:ci of ann', 'ann')).toBe(true);
  expect(samePerson('token:ci of ann', 'token:other of ann')).toBe(false);
  expect(samePerson('ann', 'bob')).toBe(false);
});
