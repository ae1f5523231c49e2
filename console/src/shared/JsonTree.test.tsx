import { fireEvent, screen, within } from '@testing-library/react';
import { describe, expect, test } from 'vitest';
import { bytesOf } from './base64';
import { HexView } from './HexView';
import { indexOf, meaning, NotJson } from './json-index';
import { openedAtFirst, rowsOf } from './json-rows';
import { JsonTree } from './JsonTree';
import { expectAccessible, show } from './testing/render';
import { TextWindow } from './TextWindow';

const row = (name: string) => screen.getAllByRole('treeitem').find((each) => each.textContent.startsWith(name))!;

describe('the tree', () => {
  test('shows integers of any length as they are written', () => {
    show(<JsonTree text='{"id": 12345678901234567890, "price": 1.10, "big": 1e400, "neg": -0}' />);
    expect(row('id')).toHaveTextContent('id:12345678901234567890');
    expect(row('price')).toHaveTextContent('price:1.10');
    expect(row('big')).toHaveTextContent('big:1e400');
    expect(row('neg')).toHaveTextContent('neg:-0');
  });

  test('folds and unfolds', async () => {
    const { user, container } = show(<JsonTree text='{"a": {"b": [true, null]}, "c": "x"}' />);
    await expectAccessible(container);
    expect(screen.getAllByRole('treeitem')).toHaveLength(6);
    await user.click(within(row('a:')).getByRole('button', { name: 'Collapse' }));
    expect(screen.getAllByRole('treeitem')).toHaveLength(3);
  });

  test('of 20,000 levels can be opened', () => {
    const text = `${'['.repeat(20_000)}1${']'.repeat(20_000)}`;
    const index = indexOf(text);
    const all = new Map(Array.from({ length: 20_000 }, (_, node) => [node, 1]));
    expect(rowsOf(index, { shown: all }, 19_990, 400).rows.at(-1)).toMatchObject({ node: 20_000, depth: 20_000 });
    show(<JsonTree text={text} />);
    expect(screen.getAllByRole('treeitem').length).toBeLessThan(10);
    fireEvent.click(screen.getAllByRole('button', { name: 'Expand' }).at(-1)!);
    expect(screen.getAllByRole('treeitem').length).toBeLessThan(10);
  });

  test('of very many children shows some, and more when asked', async () => {
    const { user } = show(<JsonTree text={JSON.stringify(Array.from({ length: 5000 }, (_, at) => at))} />);
    expect(screen.getAllByRole('treeitem')).toHaveLength(102);
    await user.click(screen.getByRole('button', { name: 'Show 100 more' }));
    expect(screen.getAllByRole('treeitem')).toHaveLength(202);
  });

  test('never has more than some hundred rows on the page', () => {
    const index = indexOf(JSON.stringify(Array.from({ length: 5000 }, () => ({ a: 1 }))));
    const all = new Map([[0, 5000]]);
    const { rows, more } = rowsOf(index, { shown: all }, 300, 400);
    expect([rows.length, more, rows[0]!.place]).toEqual([400, true, 299]);
    expect(openedAtFirst(index).size).toBeLessThan(60);
  });

  test('of hostile keys and values is text', () => {
    const { container } = show(<JsonTree text='{"<img src=x>": "\u202e\\u202e<script>", "__proto__": 1}' />);
    expect(container.querySelector('img, script')).toBeNull();
    expect(row('__proto__')).toHaveTextContent('__proto__:1');
    expect(container).toHaveTextContent('"\\u202e\\u202e<script>"');
  });

  test('of what is no JSON is the text', () => {
    show(<JsonTree text='{"a": ' />);
    expect(screen.getByText('This is not JSON.')).toBeInTheDocument();
  });
});

describe('the scanner', () => {
  test.each(['', '{', '[1,]', '{"a":1,}', '{a:1}', '01', '1 2', '"x', 'nul', '[1}', '{"a" 1}', '[,]', 'NaN'])('refuses %j', (text) => {
    expect(() => indexOf(text)).toThrow(NotJson);
  });

  test.each(['0', '"a\\"b\\\\"', '[]', '{}', ' [ 1 , {"a" : [ ] } ] ', 'true', '-1.5e-7', '""'])('reads %j', (text) => {
    expect(indexOf(text).start(0)).toBe(text.length - text.trimStart().length);
  });

  test('reads 16 MiB in slices', () => {
    const text = `[${'{"k":"0123456789"},'.repeat(880_000)}0]`;
    const index = indexOf(text);
    expect(index.children(0)).toBe(880_001);
    expect(index.size).toBe(1 + 2 * 880_000 + 1);
  });

  test('a broken escape stays as it is written', () => {
    expect(meaning('"a\\x"')).toBe('a\\x');
    expect(meaning('"\\u00e9"')).toBe('é');
  });
});

test('long text is shown in windows', async () => {
  const text = `${'a'.repeat(40_000)}END`;
  const { user, container } = show(<TextWindow text={text} />);
  expect(container).not.toHaveTextContent('END');
  await user.click(screen.getByRole('button', { name: 'Later' }));
  expect(container).toHaveTextContent('END');
  expect(screen.getByText('Characters 32,769 to 40,003 of 40,003')).toBeInTheDocument();
});

test('bytes are shown as hex and as far as they are ASCII', () => {
  show(<HexView bytes={bytesOf('AP9IZWxsbw==')!} />);
  expect(screen.getByText(/00000000 00 ff 48 65 6c 6c 6f/)).toHaveTextContent('..Hello');
  expect(bytesOf('%%%')).toBeNull();
});
