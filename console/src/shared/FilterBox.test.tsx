import { screen, waitFor } from '@testing-library/react';
import { describe, expect, test, vi } from 'vitest';
import { ApiProblem } from '@/api/problem';
import { begunAt, namesFor, valuesFor, written } from './filter-completion';
import { FilterBox } from './FilterBox';
import { expectAccessible, serve, show } from './testing/render';

const texts = (text: string, cursor = text.length, known: string[] = []) => {
  const begun = begunAt(text, cursor);
  if (begun === null) return null;
  const found = begun.kind === 'name' ? namesFor(begun, { queue: '', age: '', attempts: '', data: '' }) : valuesFor(begun, known);
  return found.map((each) => each.text);
};

describe('completion', () => {
  test.each([
    ['a', ['age:', 'attempts:']],
    ['queue:x -a', ['age:', 'attempts:']],
    ['d', ['data.']],
    ['age:>', ['>1h', '>1d', '>7d']],
    ['status:pen', ['PENDING']],
    ['status:PENDING,q', ['QUARANTINED']],
    ['"a phrase a', null],
    ['data."odd a', null],
  ])('of %j is %j', (text, expected) => expect(texts(text)).toEqual(expected));

  test('knows values, and writes those in quotes that need it', () => {
    expect(texts('queue:o', 7, ['late orders', 'orders', 'pay'])).toEqual(['orders', '"late orders"']);
    expect(written('a"b')).toBe('"a\\"b"');
    expect(written('-x')).toBe('"-x"');
  });

  test('replaces the whole word that the cursor is in', () => {
    expect(begunAt('que age:>1d', 2)).toMatchObject({ from: 0, to: 3, text: 'qu' });
  });
});

describe('the filter box', () => {
  test('suggests names, then values that the server knows, and asks on Enter', async () => {
    const sent = serve({ 'POST /api/v1/search/complete': { items: [{ text: 'orders', replaces: [6, 7], what: '' }] } });
    const onSubmit = vi.fn();
    const { user, container } = show(<FilterBox value="" onSubmit={onSubmit} />);
    await user.type(screen.getByRole('combobox'), 'que');
    await expectAccessible(container);
    await user.keyboard('{ArrowDown}{Enter}');
    expect(screen.getByRole('combobox')).toHaveValue('queue:');
    await user.keyboard('o');
    expect(await screen.findByRole('option', { name: 'orders' })).toBeInTheDocument();
    await user.keyboard('{ArrowDown}{Tab}{Enter}');
    expect(onSubmit).toHaveBeenCalledWith('queue:orders');
    expect(sent.map((each) => each.body)).toContainEqual({ q: 'queue:o', at: 7 });
    expect(sent.every((each) => each.query.size === 0)).toBe(true);
  });

  test('counts characters as the server does', async () => {
    const sent = serve({ 'POST /api/v1/search/complete': { items: [{ text: 'orders', replaces: [8, 9], what: '' }] } });
    const { user } = show(<FilterBox value="" onSubmit={vi.fn()} />);
    await user.type(screen.getByRole('combobox'), '😀 queue:o');
    await user.click(await screen.findByRole('option', { name: 'orders' }));
    expect(sent.at(-1)!.body).toEqual({ q: '😀 queue:o', at: 9 });
    expect(screen.getByRole('combobox')).toHaveValue('😀 queue:orders ');
  });

  test('says where a filter cannot be read', () => {
    const refused = new ApiProblem({ status: 400, detail: 'age needs a unit', remedy: 'write age:>2d', column: 5 });
    show(<FilterBox value="age:5" onSubmit={vi.fn()} problem={refused} />);
    expect(screen.getByRole('alert')).toHaveTextContent('age needs a unit (at character 5)');
    expect(screen.getByRole('combobox')).toBeInvalid();
  });

  test('is cleared at once', async () => {
    const onSubmit = vi.fn();
    const { user } = show(<FilterBox value="queue:orders" onSubmit={onSubmit} />);
    await user.click(screen.getByRole('button', { name: 'Clear the filter' }));
    await waitFor(() => expect(onSubmit).toHaveBeenCalledWith(''));
  });
});
