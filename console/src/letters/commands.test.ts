import { execFileSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { letterByCommand, letterByCurl, lettersByCommand, lettersByCurl, quoted } from './commands';

const HOSTILE = [
  "'; touch /tmp/pwned #",
  '$(id)',
  '`id`',
  '"$HOME"',
  "it's",
  '!history',
  '\\',
  "\\'",
  'a\nrm -rf /',
  '\u001b[31m',
  '\u0003',
  '\u202eevil',
  '--help',
  '-x',
  '~',
  '*',
  '{a,b}',
  '',
  'é ü 漢 😀',
  "\u{e0041}'$(id)",
  '%s %d',
];

function inBash(command: string): string {
  return execFileSync('bash', ['--norc', '-c', command], { encoding: 'utf8', env: { LC_ALL: 'C.UTF-8', PATH: process.env.PATH } });
}

test.each(HOSTILE)('a shell reads %j as it was', (text) => {
  expect(inBash(`printf %s ${quoted(text)}`)).toBe(text);
});

test.each(HOSTILE)('%j is one argument of the command, and no option', (text) => {
  const told = inBash(`redrive() { printf '%s\\0' "$@"; }; ${lettersByCommand(text)}; ${letterByCommand(text)}`).split('\0');
  expect(told).toEqual([...(text === '' ? ['list'] : ['list', `--where=${text}`]), 'show', '--', text, '']);
});

test.each(HOSTILE)('curl sends %j exactly', (text) => {
  const told = inBash(`REDRIVE_TOKEN=t; curl() { printf '%s\\0' "$@"; }; ${lettersByCurl('https://x', text)}`).split('\0');
  expect(told.slice(0, 2)).toEqual(['-H', 'Authorization: Bearer t']);
  expect(JSON.parse(told[5]!)).toEqual({ selection: text === '' ? {} : { q: text } });
});

test('nothing that cannot be seen reaches the terminal', () => {
  expect(quoted('a\u202eb\u001bc')).toBe(String.raw`$'a\u202eb\x1bc'`);
});

test('the id is a part of the path, and the token a name', () => {
  expect(letterByCurl('https://x/redrive', '../tokens?a=b')).toBe(
    'curl -H "Authorization: Bearer $REDRIVE_TOKEN" https://x/redrive/api/v1/dlq/..%2Ftokens%3Fa%3Db',
  );
});
