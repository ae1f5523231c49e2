import { screen, waitFor, within } from '@testing-library/react';
import { expect, test } from 'vitest';
import { expectAccessible, problem, serve, show, somebody } from '@/shared/testing/render';
import { RunsPage } from './RunsPage';
import { aRun } from './samples.testing';

const running = aRun({ id: 'r-1', reason: 'first', progress: { taken: 10, sent: 10, came_back_same: 2 } });
const done = aRun({ id: 'r-2', status: 'DONE', reason: 'second', ended_at: '2026-11-16T10:01:00Z' });

test('runs are listed, and the address says which', async () => {
  const sent = serve({ 'GET /api/v1/runs': { items: [running, done], next: null } });
  const { user, router, container } = show(<RunsPage />, { at: '/runs', path: '/runs' });
  expect(await screen.findByText('10 of 100 sent')).toBeInTheDocument();
  expect(screen.getByText(/2 came back/)).toBeInTheDocument();
  await expectAccessible(container);
  await user.click(screen.getByText('Ended'));
  await waitFor(() => expect(router.state.location.hash).toBe('#show=ended'));
  expect(screen.queryByText('first')).toBeNull();
  expect(screen.getByText('second')).toBeInTheDocument();
  await user.click(screen.getByText('Active'));
  await waitFor(() => expect(sent.some((each) => each.query.get('active') === 'true')).toBe(true));
});

test('what waits for me stands on top, for whoever may approve', async () => {
  const waiting = aRun({ id: 'r-3', status: 'AWAITING_APPROVAL', reason: 'please' });
  const sent = serve({ 'GET /api/v1/runs': { items: [waiting], next: null }, 'GET /api/v1/approvals': { items: [waiting], next: null } });
  show(<RunsPage />, { me: somebody(['letters:read', 'runs:approve']) });
  const mine = await screen.findByRole('region', { name: '1 run waits for your approval' });
  expect(within(mine).getByRole('link', { name: 'Look at it' })).toHaveAttribute('href', '/runs/r-3');
  expect(sent.some((each) => each.path === '/api/v1/approvals')).toBe(true);
});

test('whoever may not approve is not asked about it', async () => {
  const sent = serve({ 'GET /api/v1/runs': { items: [running], next: null } });
  show(<RunsPage />);
  await screen.findByText('10 of 100 sent');
  expect(sent.some((each) => each.path === '/api/v1/approvals')).toBe(false);
});

test('no runs say what to do, and a problem has its remedy', async () => {
  serve({ 'GET /api/v1/runs': { items: [], next: null } });
  const first = show(<RunsPage />);
  expect(await screen.findByRole('link', { name: 'Go to the letters' })).toHaveAttribute('href', '/letters');
  first.unmount();
  serve({ 'GET /api/v1/runs': problem(403, 'not for you', { remedy: 'ask for a role' }) });
  show(<RunsPage />);
  expect(await screen.findByText('ask for a role')).toBeInTheDocument();
});

test('older runs are asked for by the cursor of the page before', async () => {
  const sent = serve({
    'GET /api/v1/runs': ({ query }: { query: URLSearchParams }) => (query.get('after') === 'c-1' ? { items: [done], next: null } : { items: [running], next: 'c-1' }),
  });
  const { user } = show(<RunsPage />);
  await screen.findByText('first');
  await user.click(screen.getByRole('button', { name: 'Load more' }));
  expect(await screen.findByText('second')).toBeInTheDocument();
  expect(screen.getByText('first')).toBeInTheDocument();
  expect(sent.filter((each) => each.query.get('after') === 'c-1')).toHaveLength(1);
});
