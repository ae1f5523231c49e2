import { screen, waitFor, within } from '@testing-library/react';
import { expect, test } from 'vitest';
import type { Examination, Finding } from '@/api/types';
import { expectAccessible, problem, serve, show, somebody } from '@/shared/testing/render';
import { DoctorPage } from './DoctorPage';
import { byPlace, counted } from './findings';

const ADMIN = somebody(['access:manage']);
const NEVER: Examination = { running: false, at: null, findings: [] };

function finding(given: Partial<Finding>): Finding {
  return { check: 'ttl', level: 'ok', place: 'broker', what: 'all is well', remedy: '', queue: null, unreachable: false, ...given };
}

const FOUND: Examination = {
  running: false,
  at: '2026-11-18T00:00:00Z',
  findings: [
    finding({ level: 'problem', queue: 'orders', what: 'messages older than 1m vanish', remedy: 'name a dead-letter exchange' }),
    finding({ level: 'problem', place: 'store', check: 'fsync', what: 'the server runs with fsync = off' }),
    finding({ level: 'unknown', place: 'store', check: 'postgres-space', what: 'SQL does not tell' }),
    finding({ level: 'warn', place: 'disk', check: 'one-disk', what: 'the spool is on the disk of the store' }),
    finding({ place: 'settings', check: 'settings', what: 'no setting lets go of messages' }),
  ],
};

test('opening the page looks at nothing', async () => {
  const sent = serve({ 'GET /api/v1/doctor': NEVER });
  const { container } = show(<DoctorPage />, { me: ADMIN });
  expect(await screen.findByText('Nobody has looked since the server was started')).toBeInTheDocument();
  expect(sent.map(({ method }) => method)).toEqual(['GET']);
  await expectAccessible(container);
});

test('a look is begun by the button, waited for, and its findings are told by place', async () => {
  let told: Examination = NEVER;
  const sent = serve({
    'GET /api/v1/doctor': () => {
      const now = told;
      if (told.running) told = FOUND;
      return now;
    },
    'POST /api/v1/doctor': () => (told = { ...NEVER, running: true }),
  });
  const { user, container } = show(<DoctorPage />, { me: ADMIN });
  await user.click(await screen.findByRole('button', { name: 'Look now' }));
  expect(await screen.findByText(/are being looked at/)).toBeInTheDocument();
  expect(await screen.findByText('2 problems', {}, { timeout: 5_000 })).toBeInTheDocument();
  expect(sent.filter(({ method }) => method === 'POST')).toHaveLength(1);
  const store = screen.getByRole('heading', { name: 'Store' }).closest('section')!;
  expect(within(store).getByText('the server runs with fsync = off')).toBeInTheDocument();
  expect(within(store).getByText('Not checked')).toBeInTheDocument();
  const row = screen.getByText('messages older than 1m vanish').closest('tr')!;
  expect(within(row).getByText('Problem')).toBeInTheDocument();
  expect(within(row).getByText('orders')).toBeInTheDocument();
  expect(within(row).getByText('name a dead-letter exchange')).toBeInTheDocument();
  await waitFor(() => expect(screen.queryByText(/are being looked at/)).toBeNull());
  await expectAccessible(container);
});

test('who asks again within the minute is told so', async () => {
  serve({ 'GET /api/v1/doctor': FOUND, 'POST /api/v1/doctor': FOUND });
  const { user } = show(<DoctorPage />, { me: ADMIN });
  await user.click(await screen.findByRole('button', { name: 'Look now' }));
  expect(await screen.findByText(/less than a minute ago: it is what you see/)).toBeInTheDocument();
});

test.each([[somebody(['letters:read'])], [somebody(['access:manage'], ['orders'])]])('it is not shown to %j', async (me) => {
  const sent = serve({ 'GET /api/v1/doctor': FOUND });
  show(<DoctorPage />, { me });
  expect(await screen.findByText('The doctor is for administrators')).toBeInTheDocument();
  expect(sent).toEqual([]);
});

test('a problem is told', async () => {
  serve({ 'GET /api/v1/doctor': problem(403, 'ann lacks the permission access:manage') });
  show(<DoctorPage />, { me: ADMIN });
  expect(await screen.findByRole('alert')).toHaveTextContent('ann lacks the permission access:manage');
});

test('findings are counted and sorted into places', () => {
  expect(counted(FOUND.findings)).toEqual([['problem', 2], ['warn', 1], ['unknown', 1], ['ok', 1]]);
  expect(byPlace(FOUND.findings).map(([place, found]) => [place, found.length])).toEqual([
    ['broker', 1],
    ['store', 2],
    ['disk', 1],
    ['settings', 1],
  ]);
});
