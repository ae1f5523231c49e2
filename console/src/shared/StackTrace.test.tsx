import { screen, within } from '@testing-library/react';
import { expect, test } from 'vitest';
import type { Frame, Raised } from './stack-frames';
import { StackTrace } from './StackTrace';
import { expectAccessible, show } from './testing/render';

const frame = (name: string, own: boolean): Frame => ({ file: `${name}.py`, line: 7, function: name, source: `${name}()`, own });
const raised = (type: string, frames: Frame[], link = ''): Raised => ({ type, text: `${type} text`, frames, link });

test('what was raised last comes first, and what led to it below', () => {
  show(<StackTrace chain={[raised('KeyError', [], 'cause'), raised('NoCustomer', [])]} />);
  const items = screen.getAllByRole('listitem');
  expect(items[0]).toHaveTextContent('NoCustomer text');
  expect(items[1]).toHaveTextContent('Caused byKeyErrorKeyError text');
});

test('frames of libraries are folded, and open when they are asked for', async () => {
  const chain = [raised('Oops', [frame('main', true), frame('lib_a', false), frame('lib_b', false), frame('charge', true)])];
  const { user, container } = show(<StackTrace chain={chain} />);
  expect(screen.getByText('charge.py:7')).toBeInTheDocument();
  expect(screen.queryByText('lib_b.py:7')).toBeNull();
  const lines = within(container.querySelector('ol ol')!).getAllByRole('listitem');
  expect(lines.map((each) => each.textContent.slice(0, 6))).toEqual(['charge', '2 libr', 'main.p']);
  await user.click(screen.getByRole('button', { name: '2 library frames' }));
  expect(screen.getByText('lib_b.py:7')).toBeInTheDocument();
  await expectAccessible(container);
});

test('without own frames the innermost ones are open', () => {
  show(<StackTrace chain={[raised('Oops', [frame('lib_a', false)])]} />);
  expect(screen.getByText('lib_a.py:7')).toBeInTheDocument();
});

test('endless recursion does not make an endless page', () => {
  const deep = Array.from({ length: 20_000 }, (_, at) => frame(`f${at}`, true));
  show(<StackTrace chain={[raised('RecursionError', deep)]} />);
  expect(screen.getAllByRole('listitem').length).toBeLessThan(60);
  expect(screen.getByRole('button', { name: 'Show 19,970 more' })).toBeInTheDocument();
});

test('markup stays text', () => {
  const { container } = show(<StackTrace chain={[raised('<img src=x onerror=alert(1)>', [frame('<b>', true)])]} />);
  expect(container.querySelector('img, ol b')).toBeNull();
});
