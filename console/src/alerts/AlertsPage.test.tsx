import { screen, waitFor, within } from '@testing-library/react';
import { expect, test } from 'vitest';
import type { Alert } from '@/api/types';
import { ptBR } from '@/locales/pt-BR';
import { expectAccessible, problem, serve, show, somebody } from '@/shared/testing/render';
import { AlertPage } from './AlertPage';
import { firingOf, overOf, pageOf, worstOf } from './alerts';
import { AlertsPage } from './AlertsPage';
import { anAlert, anEnded, minutesAgo } from './testing-alerts';

const LIST = 'GET /api/v1/alerts';
const ANN = somebody(['letters:read', 'groups:change']);
const soon = new Date(Date.now() + 4 * 3_600_000 - 5_000).toISOString();

const rowOf = async (title: string) => (await screen.findByText(title)).closest('tr')!;

test('what is firing comes first, the worst before the newest, and what is over stands below', async () => {
  serve({
    [LIST]: {
      items: [
        anAlert('newest', { since: minutesAgo(1) }),
        anAlert('worst', { severity: 'critical', since: minutesAgo(90) }),
        anAlert('older', { since: minutesAgo(30) }),
        anEnded('past'),
      ],
    },
  });
  const { container } = show(<AlertsPage />, { me: ANN });
  const firing = (await screen.findByRole('heading', { name: 'Firing' })).closest('section')!;
  const titles = within(firing).getAllByRole('link').map((each) => each.textContent);
  expect(titles).toEqual(['worst', 'newest', 'older'].map((id) => `New failure: NoCustomer of ${id}`));
  const over = screen.getByRole('heading', { name: 'Over' }).closest('section')!;
  expect(within(over).getByText('New failure: NoCustomer of past')).toBeInTheDocument();
  expect(within(over).getByText(/10m ago/)).toBeInTheDocument();
  expect(within(over).getByText('after 1h')).toBeInTheDocument();
  expect(within(over).queryByRole('button')).toBeNull();
  await expectAccessible(container);
});

test('a row tells how bad it is, where, how many, since when and who sees to it', async () => {
  serve({
    [LIST]: {
      items: [
        anAlert('a', { severity: 'error', counts: { letters: 1204, 'per minute': 40, strange: 2 } }),
        anAlert('b', { acknowledged_by: 'ben', acknowledged_at: minutesAgo(2) }),
        anAlert('c', { snoozed_by: 'carol', snoozed_until: soon }),
      ],
    },
  });
  show(<AlertsPage />, { me: ANN });
  const first = await rowOf('New failure: NoCustomer of a');
  expect(within(first).getByText('Error')).toBeInTheDocument();
  expect(within(first).getByText('orders')).toBeInTheDocument();
  expect(first).toHaveTextContent('Letters 1,204Per minute 40strange 2Rule new_group');
  expect(first).toHaveTextContent('4m ago');
  expect(first).toHaveTextContent('Nobody yet');
  expect(within(first).getByRole('link')).toHaveAttribute('href', '/groups/a');
  expect(await rowOf('New failure: NoCustomer of b')).toHaveTextContent('Acknowledged by ben, 2m ago');
  expect(await rowOf('New failure: NoCustomer of c')).toHaveTextContent('Snoozed by carol, wakes in 3 hours');
});

test('what somebody has resolved though it goes on says so', async () => {
  serve({ [LIST]: { items: [anEnded('a', { held: true, acknowledged_by: 'ben' })] } });
  show(<AlertsPage />, { me: ANN });
  const row = await rowOf('New failure: NoCustomer of a');
  expect(row).toHaveTextContent('Resolved by ben');
  expect(row).toHaveTextContent('Said to be over, though rules still see it');
});

test('where nothing is firing it says so, and where rules and channels are set', async () => {
  serve({ [LIST]: { items: [] } });
  const { container } = show(<AlertsPage />, { me: ANN });
  expect(await screen.findByText('Nothing is firing')).toBeInTheDocument();
  expect(screen.getByText(/\[alerts\.rules\].*\[alerts\.channels\].*docs\/alerts\.md/)).toBeInTheDocument();
  expect(screen.queryByRole('heading', { name: 'Over' })).toBeNull();
  await expectAccessible(container);
});

test('a problem is told', async () => {
  serve({ [LIST]: problem(403, 'ann lacks the permission letters:read') });
  show(<AlertsPage />, { me: ANN });
  expect(await screen.findByRole('alert')).toHaveTextContent('ann lacks the permission letters:read');
});

/** A server with one alert, which becomes what each deed makes of it. */
function serveOne(alert: Alert, after: Partial<Alert>) {
  let now = alert;
  const change = () => (now = { ...now, ...after });
  const deeds = ['acknowledge', 'snooze', 'wake', 'resolve'].map((deed) => [`POST /api/v1/alerts/${alert.id}/${deed}`, change]);
  const sent = serve({ [LIST]: () => ({ items: [now] }), ...(Object.fromEntries(deeds) as object) });
  return () => sent.filter(({ method }) => method === 'POST').map(({ path, body }) => [path, body]);
}

test('acknowledging takes a reason, is told when it is done, and leaves the focus at the alert', async () => {
  const posted = serveOne(anAlert('a'), { acknowledged_by: 'ann', acknowledged_at: minutesAgo(0) });
  const { user } = show(<AlertsPage />, { me: ANN });
  await user.click(await screen.findByRole('button', { name: 'Acknowledge' }));
  const dialog = await screen.findByRole('dialog', { name: 'Acknowledge the alert' });
  expect(dialog).toHaveTextContent('New failure: NoCustomer of a');
  await expectAccessible(dialog);
  await user.type(within(dialog).getByLabelText('Why'), 'on it{Enter}');
  expect(await screen.findByText('The alert is acknowledged')).toBeInTheDocument();
  expect(posted()).toEqual([['/api/v1/alerts/a/acknowledge', { reason: 'on it' }]]);
  expect(await rowOf('New failure: NoCustomer of a')).toHaveTextContent('Acknowledged by ann');
  await waitFor(() => expect(screen.queryByRole('dialog')).toBeNull());
  expect(screen.queryByRole('button', { name: 'Acknowledge' })).toBeNull();
  await waitFor(() => expect(screen.getByRole('link', { name: 'New failure: NoCustomer of a' })).toHaveFocus());
});

test.each([
  ['1 hour', '1h'],
  ['4 hours', '4h'],
  ['1 day', '1d'],
  ['1 week', '1w'],
])('it is snoozed for %s', async (name, wait) => {
  const posted = serveOne(anAlert('a'), { snoozed_by: 'ann', snoozed_until: soon });
  const { user } = show(<AlertsPage />, { me: ANN });
  await user.click(await screen.findByRole('button', { name: 'Snooze' }));
  await user.click(await screen.findByRole('menuitem', { name }));
  await user.click(await screen.findByRole('button', { name: `Snooze for ${name}` }));
  expect(await screen.findByText(`The alert is snoozed for ${name}`)).toBeInTheDocument();
  expect(posted()).toEqual([['/api/v1/alerts/a/snooze', { wait, reason: '' }]]);
  expect(await screen.findByRole('button', { name: 'Wake' })).toBeInTheDocument();
});

test('what is snoozed can be woken, also when it is over', async () => {
  const posted = serveOne(anEnded('a', { snoozed_by: 'ben', snoozed_until: soon }), { snoozed_by: null, snoozed_until: null });
  const { user } = show(<AlertsPage />, { me: ANN });
  await user.click(await screen.findByRole('button', { name: 'Wake' }));
  await user.click(within(await screen.findByRole('dialog')).getByRole('button', { name: 'Wake' }));
  expect(await screen.findByText('The alert is awake')).toBeInTheDocument();
  expect(posted()).toEqual([['/api/v1/alerts/a/wake', { reason: '' }]]);
  await waitFor(() => expect(screen.queryByRole('button', { name: 'Wake' })).toBeNull());
});

test('a snooze that has run out is none', async () => {
  serve({ [LIST]: { items: [anAlert('a', { snoozed_by: 'ben', snoozed_until: minutesAgo(1) })] } });
  show(<AlertsPage />, { me: ANN });
  expect(await rowOf('New failure: NoCustomer of a')).toHaveTextContent('Nobody yet');
  expect(screen.getByRole('button', { name: 'Snooze' })).toBeEnabled();
});

test('what is resolved stands among what is over, and has the focus there', async () => {
  const posted = serveOne(anAlert('a'), { status: 'RESOLVED', ended_at: minutesAgo(0), held: true, acknowledged_by: 'ann' });
  const { user } = show(<AlertsPage />, { me: ANN });
  await user.click(await screen.findByRole('button', { name: 'Resolve' }));
  await user.click(within(await screen.findByRole('dialog')).getByRole('button', { name: 'Resolve' }));
  expect(await screen.findByText('The alert is resolved')).toBeInTheDocument();
  expect(posted()).toEqual([['/api/v1/alerts/a/resolve', { reason: '' }]]);
  const over = (await screen.findByRole('heading', { name: 'Over' })).closest('section')!;
  await waitFor(() => expect(within(over).getByRole('link', { name: 'New failure: NoCustomer of a' })).toHaveFocus());
});

test('what the server refuses is told in the dialog, which stays', async () => {
  serve({
    [LIST]: { items: [anAlert('a')] },
    'POST /api/v1/alerts/a/acknowledge': problem(409, 'this alert is over', { remedy: 'there is nothing to do about it' }),
  });
  const { user } = show(<AlertsPage />, { me: ANN });
  await user.click(await screen.findByRole('button', { name: 'Acknowledge' }));
  const dialog = await screen.findByRole('dialog');
  await user.type(within(dialog).getByLabelText('Why'), 'on it{Enter}');
  expect(await within(dialog).findByRole('alert')).toHaveTextContent('this alert is over');
  expect(within(dialog).getByLabelText('Why')).toHaveValue('on it');
});

test.each([
  ['who only looks', somebody(['letters:read']), 'orders', 'You lack the permission groups:change for the queue orders'],
  ['who may it elsewhere', somebody(['letters:read', 'groups:change'], ['payments']), 'orders', 'You lack the permission groups:change for the queue orders'],
  ['who may it in one queue, about all of them', somebody(['letters:read', 'groups:change'], ['orders']), '', 'You lack the permission groups:change for all queues'],
])('%s is told what is lacking', async (_, me, queue, reason) => {
  serve({ [LIST]: { items: [anAlert('a', { queue })] } });
  const { container } = show(<AlertsPage />, { me });
  const refused = await screen.findByRole('group', { name: reason });
  const buttons = within(refused).getAllByRole('button');
  expect(buttons.map((each) => each.textContent)).toEqual(['Acknowledge', 'Snooze', 'Resolve']);
  for (const each of buttons) expect(each).toBeDisabled();
  await expectAccessible(container);
});

test('j, k and Enter lead to what an alert is about', async () => {
  serve({ [LIST]: { items: [anAlert('a'), anEnded('b', { path: '/runs/b' })] } });
  const { user, router } = show(<AlertsPage />, { path: '/alerts', at: '/alerts', me: ANN });
  await screen.findByText('New failure: NoCustomer of b');
  await user.keyboard('jj{Enter}');
  await waitFor(() => expect(router.state.location.pathname).toBe('/runs/b'));
});

test('one alert has an address, with what can be done about it', async () => {
  serve({ 'GET /api/v1/alerts/a': anAlert('a') });
  const { container } = show(<AlertPage />, { path: '/alerts/:id', at: '/alerts/a', me: ANN });
  expect(await screen.findByRole('button', { name: 'Acknowledge' })).toBeEnabled();
  expect(screen.getByRole('link', { name: 'All alerts' })).toHaveAttribute('href', '/alerts');
  await expectAccessible(container);
});

test('an alert that is not there says what to do', async () => {
  serve({ 'GET /api/v1/alerts/a': problem(404, 'no alert a', { remedy: 'look at the list' }) });
  show(<AlertPage />, { path: '/alerts/:id', at: '/alerts/a', me: ANN });
  expect(await screen.findByRole('alert')).toHaveTextContent('look at the list');
});

test('it speaks Portuguese', async () => {
  serve({ [LIST]: { items: [anAlert('a', { severity: 'critical' })] } });
  show(<AlertsPage />, { me: ANN, language: 'pt-BR', messages: ptBR });
  const row = await rowOf('New failure: NoCustomer of a');
  expect(row).toHaveTextContent('Crítico');
  expect(row).toHaveTextContent('Mensagens 1.204');
  expect(screen.getByRole('button', { name: 'Reconhecer' })).toBeInTheDocument();
});

test('alerts are sorted into what is firing and what is over', () => {
  const all = [anEnded('first', { ended_at: minutesAgo(40) }), anAlert('a', { severity: 'info' }), anEnded('last'), anAlert('b', { severity: 'error' })];
  expect(firingOf(all).map(({ id }) => id)).toEqual(['b', 'a']);
  expect(overOf(all).map(({ id }) => id)).toEqual(['last', 'first']);
  expect(worstOf(all)).toBe('error');
  expect(worstOf([anEnded('a')])).toBeNull();
});

test.each(['https://evil.example', '//evil.example', '/\\evil.example', 'javascript:alert(1)', ''])('%j leads nowhere else', (path) => {
  expect(pageOf(anAlert('a', { path }))).toBe('/');
});
