import { screen, within } from '@testing-library/react';
import { expect, test } from 'vitest';
import type { QueueOverview } from '@/api/types';
import { expectAccessible, problem, serve, show } from '@/shared/testing/render';
import { byNeed, wordsOf } from './health';
import { QueuesPage } from './QueuesPage';

const QUEUE: QueueOverview = {
  name: 'late orders',
  type: null,
  ready: 5,
  delayed: 0,
  unacked: null,
  consumers: 0,
  incoming: 1.26,
  outgoing: null,
  letters: 14,
};
const UNTOLD: QueueOverview = { ...QUEUE, ready: null, delayed: null, consumers: null, incoming: null, letters: 0 };

test('a queue leads to its letters and groups, and says that nobody consumes it', async () => {
  serve({ 'GET /api/v1/queues': { items: [QUEUE], incomplete: 'the management plugin is off' } });
  const { container } = show(<QueuesPage />);
  expect(await screen.findByRole('link', { name: '14' })).toHaveAttribute(
    'href',
    '/letters#q=queue%3A%22late+orders%22+status%3APENDING%2CQUARANTINED',
  );
  expect(screen.getByRole('link', { name: 'Groups of late orders' })).toHaveAttribute('href', '/groups#queue=late+orders');
  expect(screen.getByRole('link', { name: 'Letters of late orders' })).toHaveAttribute('href', '/letters#q=queue%3A%22late+orders%22');
  expect(screen.getByText('No consumer')).toBeInTheDocument();
  expect(screen.getByText(/the management plugin is off/)).toBeInTheDocument();
  await expectAccessible(container);
});

test('what the broker does not tell is neither 0 nor well', async () => {
  serve({ 'GET /api/v1/queues': { items: [UNTOLD], incomplete: '' } });
  show(<QueuesPage />);
  const row = (await screen.findByText('late orders')).closest('tr')!;
  expect(within(row).getAllByText('The broker does not tell')).toHaveLength(6);
  expect(within(row).getByText('Unknown')).toBeInTheDocument();
  expect(within(row).getAllByText('0')).toHaveLength(1);
});

test.each<[Partial<QueueOverview>, string[]]>([
  [{ consumers: 0, ready: 5 }, ['idle']],
  [{ consumers: 0, ready: 0 }, []],
  [{ consumers: null, ready: 5 }, []],
  [{ consumers: 2, ready: 5, incoming: 3, outgoing: 1, delayed: 4 }, ['growing', 'retrying']],
  [{ consumers: 2, ready: 5, incoming: 3, outgoing: null }, []],
  [{ consumers: 2, ready: 0, incoming: 3, outgoing: 1 }, []],
])('%j is %j', (told, words) => {
  expect(wordsOf({ ...UNTOLD, ...told })).toEqual(words);
});

test('what needs somebody comes first', () => {
  const well = { ...UNTOLD, name: 'a', consumers: 1, ready: 0 };
  const dead = { ...well, name: 'b', letters: 2 };
  const idle = { ...well, name: 'c', consumers: 0, ready: 1 };
  expect(byNeed([well, dead, idle]).map(({ name }) => name)).toEqual(['c', 'b', 'a']);
});

test('of many queues one is found by its name, which the address keeps', async () => {
  const items = Array.from({ length: 12 }, (_, at) => ({ ...QUEUE, name: `queue-${at}` }));
  serve({ 'GET /api/v1/queues': { items, incomplete: '' } });
  const { user, router } = show(<QueuesPage />, { at: '/queues' });
  await user.type(await screen.findByLabelText('Find a queue by its name'), 'E-7');
  expect(screen.getByText('queue-7')).toBeInTheDocument();
  expect(screen.queryByText('queue-8')).toBeNull();
  expect(router.state.location.hash).toBe('#name=E-7');
});

test('no queues: what to do', async () => {
  serve({ 'GET /api/v1/queues': { items: [], incomplete: '' } });
  show(<QueuesPage />);
  expect(await screen.findByText('No queues yet')).toBeInTheDocument();
});

test('a problem is told', async () => {
  serve({ 'GET /api/v1/queues': problem(403, 'ann lacks the permission letters:read') });
  show(<QueuesPage />);
  expect(await screen.findByRole('alert')).toHaveTextContent('ann lacks the permission letters:read');
});
