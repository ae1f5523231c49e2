import { visible } from '@/shared/untrusted';

/** Text for a terminal, whatever it holds: nothing in it is run, expanded, or taken for a key. */
export function quoted(text: string): string {
  if (/^[\w./:@%+=-]+$/.test(text)) return text;
  if (visible(text) === text && !/[\n\t]/.test(text)) return `'${text.replaceAll("'", `'\\''`)}'`;
  return `$'${Array.from(text, ansi).join('')}'`;
}

/** As bash and zsh read it between `$'` and `'`. What cannot be seen is an escape; NUL cannot be given at all. */
function ansi(character: string): string {
  const code = character.codePointAt(0) ?? 0;
  if (character === '\\' || character === "'") return `\\${character}`;
  if (code === 0) return '';
  if (code < 32 || code === 127) return `\\x${code.toString(16).padStart(2, '0')}`;
  if (visible(character) === character) return character;
  return code > 0xffff ? `\\U${code.toString(16).padStart(8, '0')}` : `\\u${code.toString(16).padStart(4, '0')}`;
}

const TOKEN = '-H "Authorization: Bearer $REDRIVE_TOKEN"';

/** `server` is where the console is: `https://redrive.example.org/redrive`. The token is never a real one. */
export const letterByCurl = (server: string, id: string) =>
  `curl ${TOKEN} ${quoted(`${server}/api/v1/dlq/${encodeURIComponent(id)}`)}`;

export function lettersByCurl(server: string, filter: string): string {
  const body = JSON.stringify({ selection: filter === '' ? {} : { q: filter } });
  return `curl ${TOKEN} -H 'Content-Type: application/json' --data ${quoted(body)} ${quoted(`${server}/api/v1/dlq-search`)}`;
}

export const letterByCommand = (id: string) => `redrive show -- ${quoted(id)}`;

/** `=` and `--`: what begins with a minus is no option. */
export const lettersByCommand = (filter: string) => (filter === '' ? 'redrive list' : `redrive list --where=${quoted(filter)}`);
export const retryByCommand = (id: string) => `redrive retry -- ${quoted(id)}`;
