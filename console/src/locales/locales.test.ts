import { readdirSync, readFileSync } from 'node:fs';
import { afterEach, expect, test, vi } from 'vitest';
import { en } from './en';
import { formatsOf, regionOf } from './format';
import { preferred } from './messages';
import { ptBR } from './pt-BR';

afterEach(() => localStorage.clear());

test('plurals follow the language', () => {
  expect([en.shared.letters(1), en.shared.letters(1200)]).toEqual(['1 letter', '1,200 letters']);
  expect([ptBR.shared.letters(1), ptBR.shared.letters(1200)]).toEqual(['1 mensagem', '1.200 mensagens']);
});

test.each([
  [['pt-BR', 'en'], 'pt-BR'],
  [['pt'], 'pt-BR'],
  [['de', 'en-GB'], 'en'],
  [['fr'], 'en'],
])('a browser that asks for %j gets %s', (asked, language) => {
  vi.spyOn(navigator, 'languages', 'get').mockReturnValue(asked);
  expect(preferred()).toBe(language);
});

test('what was chosen holds', () => {
  localStorage.setItem('redrive.language', 'pt-BR');
  expect(preferred()).toBe('pt-BR');
});

function keysOf(value: unknown, path = ''): string[] {
  if (typeof value !== 'object' || value === null) return [path];
  return Object.entries(value).flatMap(([name, each]) => keysOf(each, `${path}.${name}`));
}

test('no text is empty', () => {
  const empty = [en, ptBR].flatMap((all) =>
    keysOf(all).filter((path) => path.split('.').slice(1).reduce<unknown>((at, name) => (at as Record<string, unknown>)[name], all) === ''),
  );
  expect(empty).toEqual([]);
});

test('moments are written as where the viewer is, in the language of the page', () => {
  expect(regionOf('en', ['de', 'en-GB', 'en'])).toBe('en-GB');
  expect(regionOf('pt-BR', ['pt-PT'])).toBe('pt-BR');
  const evening = new Date(2026, 10, 16, 19, 44);
  expect(formatsOf('en', 'en-GB').time(evening)).toBe('19:44');
  expect(formatsOf('en', 'en-US').time(evening)).toBe('07:44 PM');
  expect(formatsOf('en', 'en-GB').brief(evening, evening.getTime() + 240_000)).toBe('4m ago');
});

/** Words of the API stand in no source here: `text.check[check.name]`. */
const LOOKED_UP = /\.(unreadable|check|alerts\.counts)\.[^.]+$|[^\w.]/;

test('no text is there for nobody', () => {
  const files = readdirSync('src', { recursive: true, encoding: 'utf8' });
  const read = (name: string) => readFileSync(`src/${name}`, 'utf8');
  const written = files.filter((name) => /\.tsx?$/.test(name) && !/test|^locales|schema/.test(name)).map(read).join('\n');
  const words = new Set(written.match(/[\w$]+/g));
  const unused = keysOf(en).filter((path) => !LOOKED_UP.test(path) && path.split('.').some((name, at) => at > 0 && !words.has(name)));
  expect(unused).toEqual([]);
});
