import { screen, waitFor } from '@testing-library/react';
import { expect, test } from 'vitest';
import { expectAccessible, serve, show, type Sent } from '@/shared/testing/render';
import { GroupsPage } from './GroupsPage';
import { aGroup } from './testing-groups';

const known = {
  'GET /api/v1/stats/values/queue': { items: [{ value: 'orders', letters: 3, title: '' }, { value: 'mail', letters: 1, title: '' }] },
  'GET /api/v1/stats/values/owner': { items: [{ value: 'payments', letters: 3, title: '' }] },
};
const groups = (sent: Sent[]) => sent.filter((each) => each.path === '/api/v1/groups');

test('groups are listed with their numbers, and the next page comes when it is asked for', async () => {
  const sent = serve({
    ...known,
    'GET /api/v1/groups': ({ query }: Sent) =>
      query.get('after') === null
        ? { items: [aGroup('a', { owner: 'payments', verdict: 'do not replay' })], next: 'cursor' }
        : { items: [aGroup('b', { pending: 0, by_status: { RESOLVED: 12 } })], next: null },
  });
  const { user, container } = show(<GroupsPage />, { at: '/groups' });
  const row = (await screen.findByText(/order <number> of a has/)).closest('tr')!;
  for (const text of ['NoCustomer', 'Open', 'orders', 'charge', '@payments', 'Do not replay', '7', '12', '1h ago']) expect(row).toHaveTextContent(text);
  await expectAccessible(container);
  await user.click(screen.getByRole('button', { name: 'Load more' }));
  expect((await screen.findByText(/of b has/)).closest('tr')).toHaveTextContent('Settled');
  expect(groups(sent).map((each) => each.query.get('after'))).toEqual([null, 'cursor']);
});

test('sorting, text and filters stand in the address and are asked for', async () => {
  const sent = serve({ ...known, 'GET /api/v1/groups': { items: [aGroup('a')], next: null } });
  const { user, router } = show(<GroupsPage />, { at: '/groups#queue=orders' });
  await screen.findByText(/of a has/);
  expect(groups(sent)[0]!.query.get('queue')).toBe('orders');
  await user.click(screen.getByRole('button', { name: 'Last seen' }));
  await user.selectOptions(screen.getByRole('combobox', { name: 'Verdict' }), 'requires fix');
  await user.type(screen.getByRole('textbox', { name: 'Find in titles' }), '100%');
  await waitFor(() => expect(router.state.location.hash).toBe('#queue=orders&sort=last_seen&verdict=requires+fix&text=100%25'));
  await waitFor(() => expect(groups(sent).at(-1)!.query.get('text')).toBe('100%'));
  expect(groups(sent).at(-1)!.query.get('sort')).toBe('last_seen');
  expect(screen.getByRole('columnheader', { name: 'Last seen' })).toHaveAttribute('aria-sort', 'descending');
});

test('nothing found says so, and leads back to all', async () => {
  serve({ ...known, 'GET /api/v1/groups': { items: [], next: null } });
  const { user, router } = show(<GroupsPage />, { at: '/groups#text=nothing&sort=total' });
  await user.click(await screen.findByRole('button', { name: 'Show all groups' }));
  expect(await screen.findByText('No groups yet')).toBeInTheDocument();
  expect(router.state.location.hash).toBe('#sort=total');
});

test('j and k choose a group, and Enter opens it', async () => {
  serve({ ...known, 'GET /api/v1/groups': { items: [aGroup('a'), aGroup('b')], next: null } });
  const { user, router } = show(<GroupsPage />, { at: '/groups', path: '/groups' });
  await screen.findByText(/of a has/);
  await user.keyboard('jjkj{Enter}');
  await waitFor(() => expect(router.state.location.pathname).toBe('/groups/b'));
});
