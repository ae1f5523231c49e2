import { screen, waitFor, within } from '@testing-library/react';
import { beforeEach, expect, test } from 'vitest';
import type { ApiToken, User } from '@/api/types';
import { expectAccessible, problem, serve, show, somebody } from '@/shared/testing/render';
import { grantable, grantOf } from './grants';
import { SettingsPage } from './SettingsPage';
import { stateOf } from './token-state';

const ABOUT = { version: '1.2.3', environment: 'staging', production: false, read_only: false, features: { oidc: true, local_users: true } };
const LOADED = {
  retention: { keep: 7_776_000, keep_discarded: 2_592_000, every: null, archives: true },
  approval: { more_than: 500, queues: ['payments'], edits: true, quarantined: false, rules: false, expires_after: 86_400 },
  rules: [{ name: 'timeouts', enabled: true, when: 'type:TimeoutError', wait: 600, at_most: 2, rate: 20, window: null, time_zone: 'UTC' }],
  queues: { orders: { expire_after: null, assume_after: 3600, redrive_rate: 5, ordered_by: 'data.id', keep: 864_000, keep_discarded: 86_400 } },
  masking: true,
  encryption: false,
  partial: false,
};
const ROLES = { viewer: ['letters:read'], approver: ['letters:read', 'runs:approve'], ingest: ['letters:record'] };
const TOKEN: ApiToken = {
  id: 't1',
  name: 'deploy',
  grants: [{ role: 'operator', queues: ['orders', 'pay*'] }],
  created_at: '2026-03-01T10:00:00Z',
  created_by: 'ann',
  expires_at: '2999-01-01T00:00:00Z',
  last_used_at: null,
  revoked_at: null,
  revoked_by: '',
};
const USER: User = { name: 'bob', grants: [{ role: 'viewer', queues: ['*'] }], created_at: '2026-03-01T10:00:00Z', created_by: 'ann', disabled: false, epoch: 0 };
const ADMIN = somebody(['letters:read', 'access:manage']);

let replies: Record<string, unknown>;
beforeEach(() => {
  replies = {
    'GET /api/v1/about': ABOUT,
    'GET /api/v1/settings': { roles: ROLES, loaded: LOADED },
    'GET /api/v1/tokens': { items: [TOKEN] },
    'GET /api/v1/users': { items: [USER, { ...USER, name: 'ann' }] },
  };
});
const page = (tab: string, me = ADMIN) =>
  show(
    <main>
      <SettingsPage />
    </main>,
    { me, at: tab === '' ? '/settings' : `/settings#tab=${tab}` },
  );

test('I see who I am, what I have and for which queues, and what I lack and who gives it', async () => {
  serve(replies);
  const { container } = page('', somebody(['letters:read'], ['orders']));
  expect(await screen.findByText('staging')).toBeInTheDocument();
  const lacking = (await screen.findByText(/given by approver/)).closest('tr')!;
  expect(lacking).toHaveTextContent('runs:approve');
  expect(lacking).toHaveTextContent('Approve runs of others');
  const had = screen.getByText(/with everything personal masked/).closest('tr')!;
  expect(had).toHaveTextContent('letters:read');
  expect(had).toHaveTextContent('orders');
  await expectAccessible(container);
});

test('without letters:read nothing is asked that would be denied', async () => {
  const sent = serve(replies);
  page('', somebody(['audit:read']));
  expect(await screen.findByText(/shown to those with letters:read/)).toBeInTheDocument();
  expect(sent.map(({ path }) => path)).not.toContain('/api/v1/settings');
});

test('the language is switched', async () => {
  serve(replies);
  const { user } = page('');
  await user.selectOptions(screen.getByLabelText('Language'), 'pt-BR');
  expect(await screen.findByRole('heading', { name: 'Configurações' })).toBeInTheDocument();
  localStorage.clear();
});

test('a token is made, and shown once', async () => {
  const sent = serve({ ...replies, 'POST /api/v1/tokens': { token: TOKEN, text: 'rdv_t1_secret' } });
  const { user } = page('tokens');
  await user.click(await screen.findByRole('button', { name: 'New token' }));
  const dialog = await screen.findByRole('dialog');
  await user.type(within(dialog).getByLabelText(/^Name/), 'deploy');
  await user.selectOptions(within(dialog).getByLabelText('Role'), 'ingest');
  await user.type(within(dialog).getByLabelText('Queues of the role ingest'), 'orders, pay*,');
  await user.selectOptions(within(dialog).getByLabelText('Holds for'), '30d');
  await expectAccessible(dialog);
  await user.click(within(dialog).getByRole('button', { name: 'Make the token' }));
  expect(await screen.findByText('rdv_t1_secret')).toBeInTheDocument();
  expect(sent.find(({ method }) => method === 'POST')?.body).toEqual({
    name: 'deploy',
    grants: [{ role: 'ingest', queues: ['orders', 'pay*'] }],
    lasts: '30d',
    reason: '',
  });
  await user.keyboard('{Escape}');
  expect(screen.getByText('rdv_t1_secret')).toBeInTheDocument();
  await user.click(screen.getByRole('button', { name: 'I have copied it' }));
  await waitFor(() => expect(screen.queryByText('rdv_t1_secret')).toBeNull());
});

test('a token that is being made cannot be closed away: it is shown once', async () => {
  let answer: (made: unknown) => void = () => undefined;
  serve({ ...replies, 'POST /api/v1/tokens': () => new Promise((done) => (answer = done)) });
  const { user } = page('tokens');
  await user.click(await screen.findByRole('button', { name: 'New token' }));
  await user.type(await screen.findByLabelText(/^Name/), 'deploy{Enter}');
  expect(screen.getByRole('button', { name: 'Cancel' })).toBeDisabled();
  expect(screen.getByRole('button', { name: 'Close' })).toBeDisabled();
  await user.keyboard('{Escape}');
  await user.click(document.querySelector('.mantine-Modal-overlay')!);
  answer({ token: TOKEN, text: 'rdv_t1_secret' });
  expect(await screen.findByText('rdv_t1_secret')).toBeInTheDocument();
});

test('a token that cannot be made says why, and nothing typed is lost', async () => {
  serve({ ...replies, 'POST /api/v1/tokens': problem(422, 'a token holds for a minute to 365 days') });
  const { user } = page('tokens');
  await user.click(await screen.findByRole('button', { name: 'New token' }));
  await user.type(await screen.findByLabelText(/^Name/), 'deploy{Enter}');
  expect(await screen.findByRole('alert')).toHaveTextContent('a minute to 365 days');
  expect(screen.getByLabelText(/^Name/)).toHaveValue('deploy');
});

test('a token is revoked after a question', async () => {
  const sent = serve({ ...replies, 'POST /api/v1/tokens/t1/revoke': { ...TOKEN, revoked_at: '2026-03-02T10:00:00Z' } });
  const { user, container } = page('tokens');
  await expectAccessible(container);
  await user.click(await screen.findByRole('button', { name: 'Revoke deploy' }));
  expect(await screen.findByText(/cannot be undone/)).toBeInTheDocument();
  expect(sent.some(({ method }) => method === 'POST')).toBe(false);
  await user.type(screen.getByLabelText(/^Why/), 'leaked');
  await user.click(screen.getByRole('button', { name: 'Revoke 1 token' }));
  await waitFor(() => expect(sent.find(({ method }) => method === 'POST')?.body).toEqual({ reason: 'leaked' }));
  expect(await screen.findByText('The token deploy is revoked.')).toBeInTheDocument();
});

test('tokens that have ended are shown when asked for', async () => {
  replies['GET /api/v1/tokens'] = { items: [TOKEN, { ...TOKEN, id: 't0', name: 'old', expires_at: '2020-01-01T00:00:00Z' }] };
  serve(replies);
  const { user } = page('tokens');
  await user.click(await screen.findByRole('button', { name: 'Show 1 that has ended' }));
  expect(screen.getByText('old').closest('tr')).toHaveTextContent('Expired');
  expect(screen.queryByRole('button', { name: 'Revoke old' })).toBeNull();
});

test.each(['tokens', 'users'])('%s need access:manage, and say so', async (tab) => {
  const sent = serve(replies);
  page(tab, somebody(['letters:read']));
  expect(await screen.findByText(/needs the permission access:manage/)).toBeInTheDocument();
  expect(screen.getByRole('button', { name: tab === 'tokens' ? 'New token' : 'Add a user' })).toBeDisabled();
  expect(sent.map(({ path }) => path)).not.toContain(`/api/v1/${tab}`);
});

test('a user is disabled, which ends their sessions, after a question', async () => {
  const sent = serve({ ...replies, 'PATCH /api/v1/users/bob': { items: [] } });
  const { user, container } = page('users');
  await user.click(await screen.findByRole('button', { name: 'Change bob' }));
  await user.click(await screen.findByRole('menuitem', { name: 'Disable, and end all sessions' }));
  await user.click(await screen.findByRole('button', { name: 'Disable 1 user' }));
  await waitFor(() => expect(sent.find(({ method }) => method === 'PATCH')?.body).toEqual({ disabled: true, reason: '' }));
  await expectAccessible(container);
});

test('roles are changed; those of oneself with a warning', async () => {
  const sent = serve({ ...replies, 'PATCH /api/v1/users/ann': { items: [] } });
  const { user } = page('users');
  await user.click(await screen.findByRole('button', { name: 'Change ann' }));
  await user.click(await screen.findByRole('menuitem', { name: 'Change roles' }));
  expect(await screen.findByText(/lock yourself out/)).toBeInTheDocument();
  await user.type(screen.getByLabelText('Queues of the role viewer'), 'orders');
  await user.click(screen.getByRole('button', { name: 'Change the roles' }));
  await waitFor(() =>
    expect(sent.find(({ method }) => method === 'PATCH')?.body).toEqual({ grants: [{ role: 'viewer', queues: ['orders'] }], reason: '' }),
  );
});

test.each(['Change roles', 'Set a new password', 'Disable, and end all sessions'])('the focus goes back to the button: %s', async (item) => {
  serve(replies);
  const { user } = page('users');
  const button = await screen.findByRole('button', { name: 'Change bob' });
  await user.click(button);
  await user.click(await screen.findByRole('menuitem', { name: item }));
  const dialog = await screen.findByRole('dialog');
  await waitFor(() => expect(dialog).toContainElement(document.activeElement as HTMLElement));
  await user.click(within(dialog).getByRole('button', { name: 'Cancel' }));
  await waitFor(() => expect(screen.queryByRole('dialog')).toBeNull());
  await waitFor(() => expect(button).toHaveFocus());
});

test('a user is added with a password of 12 characters at least', async () => {
  const sent = serve({ ...replies, 'POST /api/v1/users': { ...USER, name: 'eve' } });
  const { user } = page('users');
  await user.click(await screen.findByRole('button', { name: 'Add a user' }));
  await user.type(await screen.findByLabelText(/^Name/), 'eve');
  await user.type(screen.getByLabelText(/^Password/), 'too short');
  expect(screen.getByRole('button', { name: 'Add the user' })).toBeDisabled();
  await user.type(screen.getByLabelText(/^Password/), ' no more');
  await user.click(screen.getByRole('button', { name: 'Add the user' }));
  await waitFor(() => expect(sent.find(({ method }) => method === 'POST')?.body).toMatchObject({ name: 'eve', password: 'too short no more' }));
});

test('retention, approvals and rules are told as loaded', async () => {
  serve(replies);
  const { container } = page('loaded');
  expect(await screen.findByText('90d')).toBeInTheDocument();
  expect(screen.getByText('30d')).toBeInTheDocument();
  expect(screen.getByText('500 letters')).toBeInTheDocument();
  expect(screen.getByRole('link', { name: 'type:TimeoutError' })).toHaveAttribute('href', '/letters#q=type%3ATimeoutError');
  expect(screen.getByText('data.id').closest('tr')).toHaveTextContent('never');
  expect(screen.getByText('data.id').closest('tr')).toHaveTextContent('10d');
  expect(screen.queryByRole('textbox')).toBeNull();
  await expectAccessible(container);
});

test('grants as they are written', () => {
  expect(grantOf({ role: 'viewer', queues: ' ' })).toEqual({ role: 'viewer', queues: ['*'] });
  expect(grantable(ADMIN, ['letters:read', 'letters:record'])).toBe(true);
  expect(grantable(ADMIN, ['letters:read', 'runs:make'])).toBe(false);
  expect(stateOf({ ...TOKEN, revoked_at: '2026-03-01T10:00:00Z' }, 0)).toBe('revoked');
});

test('a tab that is none leads to the first one', async () => {
  serve(replies);
  page('constructor');
  expect(await screen.findByRole('tab', { selected: true })).toHaveTextContent('You');
});
