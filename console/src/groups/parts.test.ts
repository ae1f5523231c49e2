import { expect, test } from 'vitest';
import { partsOfTitle, shortTitle } from './GroupTitle';
import { changesOf, conflictsOf, rebasedOn, type Draft } from './notes';
import { successOf } from './Redrives';
import { stateOf, webAddress } from './state';
import { barsOf } from './Trend';

test.each([
  ['a.b.NoCustomer: order <number>: none', 'NoCustomer: order <number>: none'],
  ['App\\Jobs\\Charge: no', 'Charge: no'],
  ['KeyError', 'KeyError'],
  ['something broke: badly', 'something broke: badly'],
  ['', ''],
])('%s is told as %s', (title, told) => {
  expect(shortTitle(title)).toBe(told);
});

test('a title is a type and a text, where it has both', () => {
  expect(partsOfTitle('a.B: c')).toEqual({ type: 'a.B', text: 'c' });
  expect(partsOfTitle('not a type: c')).toEqual({ type: '', text: 'not a type: c' });
});

test.each(['javascript:alert(1)', 'https:wiki/17', ' data:text/html,x', 'https:', '//evil.example', 'http://', 'java\nscript:1', 'ftp://x/y'])('%s is no web address', (text) => {
  expect(webAddress(text)).toBeNull();
});

test('web addresses are', () => {
  expect(webAddress(' HTTPS://wiki/17 ')).toBe('https://wiki/17');
});

test('a group is open while a letter waits for somebody', () => {
  expect(stateOf({ by_status: { QUARANTINED: 1, REDRIVEN: 3 } })).toBe('open');
  expect(stateOf({ by_status: { REDRIVEN: 3, RESOLVED: 1 } })).toBe('underWay');
  expect(stateOf({ by_status: { DISCARDED: 3 } })).toBe('settled');
});

const draft = (more: Partial<Draft> = {}): Draft => ({ owner: '', verdict: '', note: '', runbook: '', ...more });

test('blank takes away, and what is the same is not sent', () => {
  expect(changesOf(draft({ owner: 'a', note: 'n' }), draft({ owner: ' ', note: 'n ', verdict: 'replayable' }))).toEqual({ owner: null, verdict: 'replayable' });
});

test('what both have changed is a conflict, and the rest of both stays', () => {
  const [base, mine, theirs] = [draft(), draft({ owner: 'me', note: 'n' }), draft({ owner: 'bo', verdict: 'investigate' })];
  expect(conflictsOf(base, mine, theirs)).toEqual(['owner']);
  expect(rebasedOn(theirs, base, mine, false)).toEqual(draft({ owner: 'bo', verdict: 'investigate', note: 'n' }));
  expect(rebasedOn(theirs, base, mine, true)).toEqual(draft({ owner: 'me', verdict: 'investigate', note: 'n' }));
});

test('success is of what has ended', () => {
  expect(successOf([{ outcomes: { confirmed: 2, assumed: 1, 'under way': 90 } }, { outcomes: { refused: 1 } }])).toBe(0.75);
  expect(successOf([{ outcomes: { 'under way': 1 } }])).toBeNull();
});

test('the trend ends with the hour that has begun', () => {
  const bars = barsOf([4, 5], Date.parse('2026-11-16T19:20:00Z'));
  expect(bars.map((each) => each.from)).toEqual(['2026-11-16T18:00:00.000Z', '2026-11-16T19:00:00.000Z']);
});
