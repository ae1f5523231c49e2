import { screen, waitFor, within } from '@testing-library/react';
import { afterEach, expect, test, vi } from 'vitest';
import type { LetterLine } from '@/api/types';
import { expectAccessible, problem, serve, show, somebody, type Sent } from '@/shared/testing/render';
import { LettersPage } from './LettersPage';
import { aLine as letter } from './testing-letters';

vi.mock('@/runs/RedriveDialog', () => ({
  RedriveDialog: ({ selection, count, opened }: { selection: unknown; count: unknown; opened: boolean }) =>
    opened ? <div data-testid="redrive">{JSON.stringify({ selection, count })}</div> : null,
}));

const live = vi.hoisted((): { every: number | false } => ({ every: false }));
vi.mock('@/shared/live', () => ({ useLiveEvery: () => live.every }));

const page = (items: LetterLine[], next: string | null = null, count = { number: items.length, exact: true }) => ({
  items,
  next,
  previous: null,
  count,
  unsearched: 0,
});
const FACETS = {
  status: [{ value: 'PENDING', letters: 2 }],
  queue: [{ value: 'orders', letters: 2 }, { value: 'late orders', letters: 1 }],
  type: [{ value: 'NoCustomer', letters: 2 }],
  handler: [{ value: '', letters: 2 }],
  counted: 2,
  exact: true,
};
const operator = somebody(['letters:read', 'letters:decide', 'runs:make']);
type Search = { selection: { q?: string; ids?: string[]; created_after?: string }; after: string | null; limit: number };
const searched = (sent: Sent[]) => sent.filter((each) => each.path === '/api/v1/dlq-search').map((each) => each.body as Search);

afterEach(() => {
  live.every = false;
  localStorage.clear();
});

function serving(replies: Record<string, unknown>) {
  return serve({ 'POST /api/v1/search/facets': FACETS, ...replies });
}

test('letters are listed, and the next page comes when it is asked for', async () => {
  const sent = serving({
    'POST /api/v1/dlq-search': ({ body }: Sent) => {
      const { after } = body as Search;
      return after === 'cursor' ? page([letter('c')]) : page([letter('a'), letter('b')], 'cursor');
    },
  });
  const { user, container } = show(<LettersPage />, { at: '/letters' });
  expect(await screen.findByText('no customer a')).toBeInTheDocument();
  await expectAccessible(container);
  await user.click(screen.getByRole('button', { name: 'Load more' }));
  expect(await screen.findByText('no customer c')).toBeInTheDocument();
  const pages = searched(sent).filter(({ limit }) => limit === 50);
  expect(pages.map(({ after }) => after)).toEqual([null, 'cursor']);
});

test('the filter stands behind the # of the address, and is sent in the body', async () => {
  const sent = serving({ 'POST /api/v1/dlq-search': page([letter('a')]) });
  const { user, router } = show(<LettersPage />, { at: '/letters#q=queue%3Aorders' });
  await screen.findByText('no customer a');
  expect(searched(sent)[0]).toMatchObject({ selection: { q: 'queue:orders' } });
  await user.clear(screen.getByRole('combobox'));
  await user.type(screen.getByRole('combobox'), '"529.982.247-25"{Enter}');
  await waitFor(() => expect(searched(sent).some(({ selection }) => selection.q === '"529.982.247-25"')).toBe(true));
  expect(router.state.location).toMatchObject({ search: '', hash: '#q=%22529.982.247-25%22' });
});

test('a filter that cannot be read is explained', async () => {
  const bad = () => problem(400, 'age needs a unit', { column: 5 });
  serving({ 'POST /api/v1/dlq-search': bad, 'POST /api/v1/search/facets': bad });
  show(<LettersPage />, { at: '/letters#q=age%3A5' });
  expect(await screen.findByRole('alert')).toHaveTextContent('age needs a unit (at character 5)');
});

test('nothing found says what to do; nothing at all says what will be here', async () => {
  serving({ 'POST /api/v1/dlq-search': page([]) });
  const { user, router } = show(<LettersPage />, { at: '/letters#q=queue%3Anone' });
  await user.click(await screen.findByRole('button', { name: 'Show all letters' }));
  expect(await screen.findByText('No dead letters')).toBeInTheDocument();
  expect(router.state.location.hash).toBe('');
});

test('j and k choose a letter, x selects it, r sends it back, Enter opens it', async () => {
  serving({ 'POST /api/v1/dlq-search': page([letter('a'), letter('b')]) });
  const { user, router } = show(<LettersPage />, { at: '/letters', path: '/letters', me: operator });
  await screen.findByText('no customer a');
  await user.keyboard('jjk');
  expect(screen.getByText('no customer a').closest('tr')).toHaveAttribute('data-chosen');
  await user.keyboard('xr');
  expect(await screen.findByTestId('redrive')).toHaveTextContent('{"selection":{"ids":["a"]},"count":1}');
  await user.keyboard('j{Enter}');
  await waitFor(() => expect(router.state.location.pathname).toBe('/letters/b'));
});

test('Enter on a button presses the button', async () => {
  serving({ 'POST /api/v1/dlq-search': page([letter('a')]) });
  const { user, router } = show(<LettersPage />, { at: '/letters', path: '/letters', me: operator });
  await screen.findByText('no customer a');
  await user.keyboard('jx');
  screen.getByRole('button', { name: 'Clear the selection' }).focus();
  await user.keyboard('{Enter}');
  expect(screen.queryByText('1 selected')).not.toBeInTheDocument();
  expect(router.state.location.pathname).toBe('/letters');
});

test('a facet narrows the filter, and a second value of it widens it again', async () => {
  localStorage.setItem('redrive.letters.facets', 'on');
  const sent = serving({
    'POST /api/v1/dlq-search': page([letter('a')]),
    'POST /api/v1/search/facets': ({ body }: Sent) =>
      (body as Search).selection.q === undefined ? FACETS : { ...FACETS, queue: [{ value: 'orders', letters: 2 }] },
  });
  const { user, router } = show(<LettersPage />, { at: '/letters' });
  await user.click(await screen.findByRole('checkbox', { name: /^orders/ }));
  await waitFor(() => expect(router.state.location.hash).toBe('#q=queue%3Aorders'));
  await waitFor(() => expect(sent.some(({ path, body }) => path.endsWith('facets') && (body as Search).selection.q === 'queue:orders')).toBe(true));
  await waitFor(() => expect(screen.getByRole('checkbox', { name: /^orders/ })).toBeChecked());
  await user.click(screen.getByRole('checkbox', { name: /late orders/ }));
  await waitFor(() => expect(new URLSearchParams(router.state.location.hash.slice(1)).get('q')).toBe('queue:orders,"late orders"'));
});

test('counts that are not exact say so', async () => {
  localStorage.setItem('redrive.letters.facets', 'on');
  serving({ 'POST /api/v1/dlq-search': page([letter('a')]), 'POST /api/v1/search/facets': { ...FACETS, exact: false, counted: 10_000 } });
  show(<LettersPage />, { at: '/letters' });
  expect((await screen.findAllByTitle('at least 2')).length).toBeGreaterThan(0);
  expect(screen.getByText(/Counted in 10,000/)).toBeInTheDocument();
});

test('columns that are chosen stay chosen', async () => {
  serving({ 'POST /api/v1/dlq-search': page([letter('a', { handler: 'refund_money' })]) });
  const { user, unmount } = show(<LettersPage />, { at: '/letters' });
  await screen.findByText('no customer a');
  expect(screen.queryByRole('columnheader', { name: 'Handler' })).not.toBeInTheDocument();
  await user.click(screen.getByRole('button', { name: 'Columns' }));
  await user.click(await screen.findByRole('menuitemcheckbox', { name: 'Handler' }));
  expect(await screen.findByText('refund_money')).toBeInTheDocument();
  unmount();
  show(<LettersPage />, { at: '/letters' });
  expect(await screen.findByRole('columnheader', { name: 'Handler' })).toBeInTheDocument();
});

test('new letters are told by a pill, and the list does not move until somebody wants it to', async () => {
  live.every = 30;
  let items = [letter('a')];
  serving({
    'POST /api/v1/dlq-search': ({ body }: Sent) =>
      (body as Search).selection.created_after === undefined ? page(items) : page([], null, { number: 2, exact: true }),
  });
  const { user } = show(<LettersPage />, { at: '/letters' });
  await screen.findByText('no customer a');
  items = [letter('new'), letter('a')];
  const pill = await screen.findByRole('button', { name: '2 new letters' });
  expect(screen.queryByText('no customer new')).not.toBeInTheDocument();
  await user.click(pill);
  expect(await screen.findByText('no customer new')).toBeInTheDocument();
});

const MANY = { number: 1204, exact: true };

function bulk(found: LetterLine[], count = MANY) {
  const changes: { change: string; ids: string[]; reason: string }[] = [];
  serving({
    'POST /api/v1/dlq-search': ({ body }: Sent) => {
      const { after, limit } = body as Search;
      return limit === 500
        ? page(after === null ? found.slice(0, 500) : found.slice(500), after === null && found.length > 500 ? 'x' : null)
        : page(found.slice(0, 2), 'more', count);
    },
    'POST /api/v1/dlq-changes': ({ body }: Sent) => {
      const asked = body as { change: string; ids: string[]; reason: string };
      changes.push(asked);
      return { done: asked.ids, left: {} };
    },
  });
  return changes;
}

test('all that match: the true number, who is left out, in parts of 500, and a way back', async () => {
  const found = [...Array.from({ length: 700 }, (_, at) => letter(`p${at}`)), letter('r', { status: 'RESOLVED' })];
  const changes = bulk(found);
  const { user } = show(<LettersPage />, { at: '/letters', me: operator });
  await screen.findByText('no customer p0');
  await user.click(screen.getByRole('checkbox', { name: 'Select all that are listed' }));
  await user.click(screen.getByRole('button', { name: 'Select all 1,204 that match' }));
  expect(screen.getByText('All 1,204 that match are selected')).toBeInTheDocument();
  await user.click(screen.getByRole('button', { name: 'Discard' }));
  const dialog = await screen.findByRole('dialog');
  expect(await within(dialog).findByText(/1 is left out/)).toBeInTheDocument();
  const confirm = within(dialog).getByRole('button', { name: 'Discard 700 letters' });
  expect(confirm).toBeDisabled();
  await user.type(within(dialog).getByLabelText(/Why/), 'test data');
  await user.click(confirm);
  expect(await screen.findByText('700 letters discarded')).toBeInTheDocument();
  expect(changes.map((each) => [each.change, each.ids.length, each.reason])).toEqual([
    ['discard', 500, 'test data'],
    ['discard', 200, 'test data'],
  ]);
  await user.click(screen.getByRole('button', { name: 'Undo' }));
  expect(await screen.findByText('700 letters are again as they were')).toBeInTheDocument();
  expect(changes.at(-1)).toMatchObject({ change: 'restore' });
});

test('a number that nobody has counted is not claimed', async () => {
  bulk([letter('a'), letter('b')], { number: 100_000, exact: false });
  const { user } = show(<LettersPage />, { at: '/letters#q=queue%3Aorders', me: operator });
  await screen.findByText('no customer a');
  await user.click(screen.getByRole('checkbox', { name: 'Select all that are listed' }));
  await user.click(screen.getByRole('button', { name: 'Select all that match (more than 100,000)' }));
  await user.click(screen.getByRole('button', { name: 'Redrive' }));
  expect(await screen.findByTestId('redrive')).toHaveTextContent('{"selection":{"query":"queue:orders"}}');
});

test('what one may not do is there, disabled, with the reason', async () => {
  bulk([letter('a'), letter('b')]);
  const { user } = show(<LettersPage />, { at: '/letters' });
  await screen.findByText('no customer a');
  await user.keyboard('jx');
  expect(screen.getByRole('button', { name: 'Redrive' })).toBeDisabled();
  expect(screen.getByRole('group', { name: 'You lack the permission runs:make' })).toBeInTheDocument();
  await user.keyboard('r');
  expect(screen.queryByTestId('redrive')).not.toBeInTheDocument();
});
