import { render, screen, waitFor } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { createMemoryRouter } from 'react-router';
import { expect, test, vi } from 'vitest';
import { told } from '@/api/client';
import { ready } from '@/api/health';
import { createQueryClient } from '@/api/query-client';
import { en } from '@/locales/en';
import { expectAccessible, problem, serve, somebody } from '@/shared/testing/render';
import { Console } from './Console';
import { PageFailed } from './PageFailed';
import { Root } from './Root';

const ABOUT = { version: '1', environment: 'production', production: true, read_only: false, features: { oidc: false, local_users: true } };

function open(at = '/') {
  const Broken = () => {
    throw new Error('it broke');
  };
  const router = createMemoryRouter(
    [
      {
        path: '/',
        Component: Root,
        HydrateFallback: () => null,
        children: [
          {
            ErrorBoundary: PageFailed,
            children: [
              { index: true, element: <h1>Home</h1> },
              { path: 'letters', element: <h1>All letters</h1> },
              { path: 'broken', Component: Broken },
            ],
          },
        ],
      },
    ],
    { initialEntries: [at] },
  );
  const shown = render(<Console router={router} queries={createQueryClient()} language="en" messages={en} />);
  return { ...shown, router, user: userEvent.setup() };
}

test('whoever is not signed in signs in, and is where they wanted to go', async () => {
  let inside = false;
  serve({
    'GET /api/v1/session': () => (inside ? somebody() : problem(401, 'no')),
    'POST /api/v1/session': () => {
      inside = true;
      return new Response(null, { status: 204 });
    },
    'GET /api/v1/about': ABOUT,
  });
  const { user } = open('/letters');
  await user.type(await screen.findByLabelText('User'), 'ann');
  await user.type(screen.getByLabelText('Password'), 'a long enough password{Enter}');
  expect(await screen.findByRole('heading', { name: 'All letters' })).toBeInTheDocument();
  expect(await screen.findByText('production')).toBeInTheDocument();
});

test('the navigation leads everywhere, by keys too', async () => {
  serve({ 'GET /api/v1/session': somebody(), 'GET /api/v1/about': ABOUT });
  const { user, container } = open();
  const links = await screen.findAllByRole('link');
  expect(links.map((each) => each.textContent)).toEqual(
    expect.arrayContaining(['Overview', 'Groups', 'Letters', 'Runs', 'Queues', 'Audit', 'Settings']),
  );
  await expectAccessible(container);
  await user.keyboard('gl');
  expect(await screen.findByRole('heading', { name: 'All letters' })).toBeInTheDocument();
});

test('who signs out sees nothing any more', async () => {
  const sent = serve({ 'GET /api/v1/session': somebody(), 'GET /api/v1/about': ABOUT, 'DELETE /api/v1/session': () => new Response(null, { status: 204 }) });
  const { user } = open();
  await user.click(await screen.findByRole('button', { name: 'Account: ann' }));
  await user.click(await screen.findByRole('menuitem', { name: 'Sign out' }));
  expect(await screen.findByLabelText('User')).toBeInTheDocument();
  expect(sent.filter(({ method }) => method === 'DELETE')).toHaveLength(1);
  expect(screen.queryByText('Home')).toBeNull();
});

test('a session that ends while somebody works asks them to sign in again', async () => {
  serve({ 'GET /api/v1/session': somebody(), 'GET /api/v1/about': ABOUT, 'GET /api/v1/queues': problem(401, 'no') });
  open();
  await screen.findByRole('heading', { name: 'Home' });
  await expect(told('get', '/api/v1/queues')).rejects.toMatchObject({ status: 401 });
  expect(await screen.findByLabelText('User')).toBeInTheDocument();
});

test('the server goes and comes back, without anybody doing anything', async () => {
  vi.useFakeTimers({ shouldAdvanceTime: true, toFake: ['setTimeout', 'setInterval', 'clearTimeout', 'clearInterval', 'Date'] });
  let away = false;
  const down = () => problem(503, 'away', {}, { 'retry-after': '5' });
  serve({
    'GET /api/v1/session': () => (away ? down() : somebody()),
    'GET /api/v1/about': () => (away ? down() : ABOUT),
    'GET /readyz': () => (away ? down() : new Response('ok')),
  });
  open();
  await screen.findByText('production');
  away = true;
  await expect(ready()).rejects.toMatchObject({ status: 503 });
  expect(await screen.findByText('The server does not answer.')).toBeInTheDocument();
  expect(screen.getByRole('heading', { name: 'Home' })).toBeInTheDocument();
  away = false;
  await vi.advanceTimersByTimeAsync(5_500);
  await waitFor(() => expect(screen.queryByText('The server does not answer.')).toBeNull());
  vi.useRealTimers();
});

test('a page that fails leaves the rest alone', async () => {
  vi.spyOn(console, 'error').mockImplementation(() => undefined);
  serve({ 'GET /api/v1/session': somebody(), 'GET /api/v1/about': ABOUT });
  open('/broken');
  expect(await screen.findByText('This page has failed')).toBeInTheDocument();
  expect(screen.getByRole('link', { name: 'Letters' })).toBeInTheDocument();
});
