import { expect, test } from 'vitest';
import { headerText } from '@/letters/header-text';
import { valuesFor } from './filter-completion';
import { known } from './known';

const INHERITED = ['__proto__', 'constructor', 'toString', 'hasOwnProperty'];

test('only what a table has itself is known', () => {
  expect(known({ cause: 'Caused by' }, 'cause')).toBe('Caused by');
  for (const name of INHERITED) expect(known({ cause: 'Caused by' }, name)).toBeUndefined();
});

test('tables in headers and fields in filters may be named like what every object has', () => {
  for (const name of INHERITED) {
    expect(headerText(JSON.parse(`{"${name}": "x"}`))).toEqual({ text: `{"${name}":"x"}`, type: 'table' });
    expect(valuesFor({ field: name, text: '', from: 0, to: 0 } as Parameters<typeof valuesFor>[0], [])).toEqual([]);
  }
});
