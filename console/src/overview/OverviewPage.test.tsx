import { fireEvent, screen, waitFor, within } from '@testing-library/react';
import { expect, test } from 'vitest';
import { anAlert } from '@/alerts/testing-alerts';
import type { Arrivals, SeenGroup, Situation } from '@/api/insights';
import { aGroup } from '@/groups/testing-groups';
import { expectAccessible, problem, serve, show } from '@/shared/testing/render';
import { OverviewPage } from './OverviewPage';

const HOUR = 3_600_000;
const now = Math.floor(Date.now() / HOUR) * HOUR;
const hour = (ago: number) => new Date(now - ago * HOUR).toISOString();

const situation: Situation = {
  at: hour(0),
  by_status: { PENDING: 1211, QUARANTINED: 3, RESOLVED: 400 },
  oldest_pending: hour(50),
  last_5_minutes: { number: 12, exact: true },
  last_hour: { number: 61, exact: true },
  since: hour(24),
  until: hour(0),
  arrived: { PENDING: 60, RESOLVED: 20 },
  redriven: { outcomes: { 'came back': 2, confirmed: 28, 'under way': 0 }, redrives: 30, exact: true },
};
const arrivals: Arrivals = {
  step_hours: 1,
  starts: [hour(2), hour(1), hour(0)],
  groups: [{ group_id: 'g1', title: 'shop.errors.Timeout: no answer', queue: 'orders', letters: 9, counts: [1, 7, 2] }],
  others: [0, 1, 0],
  total: [1, 8, 2],
};
const seen = (id: string, more: Partial<SeenGroup> = {}): SeenGroup => ({ group: aGroup(id), letters: 5, appearance: 'known', why: null, ...more });
const queue = (name: string, more = {}) => ({
  ...{ name, type: null, ready: null, delayed: null, unacked: null, consumers: null, incoming: null, outgoing: null, letters: 0 },
  ...more,
});
const answers = (more: Record<string, unknown> = {}) => ({
  'GET /api/v1/alerts': { items: [] },
  'GET /api/v1/overview': situation,
  'GET /api/v1/overview/arrivals': arrivals,
  'GET /api/v1/overview/groups': {
    items: [
      seen('fresh', { appearance: 'new', group: aGroup('fresh', { first_seen: new Date(Date.now() - 4 * 60_000 - 5000).toISOString() }) }),
      seen('again', { appearance: 'returning', why: 'came back' }),
    ],
  },
  'GET /api/v1/queues': { items: [queue('idle'), queue('orders', { ready: 9, consumers: 0, letters: 1211 })], incomplete: '' },
  ...more,
});

test('what is pending, what arrives, and how redrives ended stand at the top', async () => {
  serve(answers());
  const { container } = show(<OverviewPage />);
  const figures = within(screen.getByRole('region', { name: 'At a glance' }));
  expect(await figures.findByRole('link', { name: '1,211' })).toHaveAttribute('href', '/letters#q=status%3APENDING');
  expect(figures.getByText('3 quarantined')).toBeInTheDocument();
  expect(figures.getByText('2.4')).toBeInTheDocument();
  expect(figures.getByText('25%')).toBeInTheDocument();
  expect(figures.getByText(/20 of 80 that arrived/)).toBeInTheDocument();
  expect(figures.getAllByRole('listitem').map((each) => each.textContent)).toEqual(['28 confirmed', '2 came back']);
  await screen.findByText('New');
  await expectAccessible(container);
});

test('new groups tell since when, and returning ones why they are marked', async () => {
  serve(answers());
  show(<OverviewPage />);
  const row = (await screen.findByText('New')).closest('tr')!;
  expect(row).toHaveTextContent('first seen 4 minutes ago');
  expect(screen.getByText('Returning')).toHaveAttribute('title', 'Letters of it were sent back and failed again');
});

test('a range goes into the address, and narrows figures and groups but not the chart', async () => {
  const sent = serve(answers());
  const { user, router } = show(<OverviewPage />);
  const chart = await screen.findByRole('application');
  fireEvent.keyDown(chart, { key: 'ArrowLeft' });
  fireEvent.keyDown(chart, { key: 'ArrowLeft', shiftKey: true });
  fireEvent.keyDown(chart, { key: 'Enter' });
  await waitFor(() => expect(router.state.location.hash).toContain('from='));
  const asked = (path: string) => sent.filter((each) => each.path === path).at(-1)!.query;
  await waitFor(() => expect(asked('/api/v1/overview').get('until')).toBe(hour(-1)));
  expect(asked('/api/v1/overview').get('since')).toBe(hour(1));
  expect(asked('/api/v1/overview/groups').get('since')).toBe(hour(1));
  expect(asked('/api/v1/overview/arrivals').get('until')).toBeNull();
  await user.click(screen.getByRole('button', { name: /Back to the whole chart/ }));
  await waitFor(() => expect(router.state.location.hash).toBe(''));
});

test('a range of the address that is none is no range', async () => {
  const sent = serve(answers());
  show(<OverviewPage />, { at: '/#within=1y&from=soon&to=never' });
  await screen.findByRole('application');
  expect(sent.find((each) => each.path === '/api/v1/overview')!.query.get('until')).toBeNull();
  expect(screen.getByRole('radio', { name: '24 hours' })).toBeChecked();
});

test('the legend leads to the groups', async () => {
  serve(answers());
  show(<OverviewPage />);
  expect(await screen.findByRole('link', { name: 'Timeout: no answer' })).toHaveAttribute('href', '/groups/g1');
  expect(screen.getByRole('link', { name: 'Others' })).toHaveAttribute('href', '/groups');
});

test('queues that need somebody come first, with what the broker tells alone', async () => {
  serve(answers());
  show(<OverviewPage />);
  const rows = within((await screen.findByText('Dead letters')).closest('table')!).getAllByRole('row');
  expect(rows.map((each) => each.textContent)).toEqual(['QueueDead lettersReadyConsumers', 'orders1,21190', 'idle0––']);
  expect(screen.getByRole('img', { name: 'Nobody consumes it' })).toBeInTheDocument();
});

test('j, k and Enter open a group', async () => {
  serve(answers());
  const { user, router } = show(<OverviewPage />, { path: '/' });
  await screen.findByText('New');
  await user.keyboard('jj{Enter}');
  await waitFor(() => expect(router.state.location.pathname).toBe('/groups/again'));
});

test('where nothing has failed yet it says what to try', async () => {
  const none = { ...situation, by_status: { PENDING: 0, RESOLVED: 0 } };
  serve(answers({ 'GET /api/v1/overview': none }));
  const { container } = show(<OverviewPage />);
  expect(await screen.findByText('redrive demo')).toBeInTheDocument();
  expect(screen.queryByRole('application')).toBeNull();
  await expectAccessible(container);
});

test('a part that fails leaves the others', async () => {
  serve(answers({ 'GET /api/v1/queues': problem(500, 'the broker has gone', { remedy: 'start it' }) }));
  show(<OverviewPage />);
  expect(await screen.findByRole('alert')).toHaveTextContent('the broker has gone');
  expect(await screen.findByRole('link', { name: '1,211' })).toBeInTheDocument();
});

test('one line tells what is firing, by its worst severity, and leads there', async () => {
  const items = [anAlert('a'), anAlert('b', { severity: 'critical' }), anAlert('c', { severity: 'error' })];
  const sent = serve(answers({ 'GET /api/v1/alerts': { items } }));
  const { container } = show(<OverviewPage />);
  const strip = await screen.findByRole('link', { name: 'Critical 3 alerts are firing' });
  expect(strip).toHaveAttribute('href', '/alerts');
  expect(sent.find((each) => each.path === '/api/v1/alerts')!.query.get('firing')).toBe('true');
  await screen.findByText('New');
  await expectAccessible(container);
});

test('more alerts than one could count in time are told as that', async () => {
  const items = Array.from({ length: 101 }, (_, number) => anAlert(`a${number}`));
  serve(answers({ 'GET /api/v1/alerts': { items } }));
  show(<OverviewPage />);
  expect(await screen.findByRole('link', { name: 'Warning More than 100 alerts are firing' })).toBeInTheDocument();
});

test('where nothing is firing there is no line, and where nobody knows it is told', async () => {
  serve(answers());
  const quiet = show(<OverviewPage />);
  await screen.findByText('New');
  expect(screen.queryByText(/firing/)).toBeNull();
  quiet.unmount();
  serve(answers({ 'GET /api/v1/alerts': problem(500, 'the list of alerts is broken') }));
  show(<OverviewPage />);
  expect(await screen.findByRole('alert')).toHaveTextContent('the list of alerts is broken');
});
