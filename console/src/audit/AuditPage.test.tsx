import { screen, waitFor, within } from '@testing-library/react';
import { expect, test } from 'vitest';
import type { LedgerEntry } from '@/api/types';
import { expectAccessible, problem, serve, show, somebody } from '@/shared/testing/render';
import { AuditPage } from './AuditPage';

const ROW: LedgerEntry = {
  seq: 7,
  at: '2026-03-01T10:00:00Z',
  who: 'ann',
  token: '',
  what: 'discarded',
  subject: { kind: 'letters', ids: ['01a1e5c7-95fb-73a1-a9f4-1cee871a4c3f', 'b', 'c'], count: 3, digest: '' },
  before: 'PENDING',
  after: 'DISCARDED',
  reason: 'test orders',
  request_id: 'req-77',
  allowed: true,
  key_id: 'k1',
  previous: 'p1',
  mac: 'm1',
};
const DENIED: LedgerEntry = {
  ...ROW,
  seq: 6,
  who: 'eve\u202e',
  what: 'denied letters:purge',
  subject: { kind: 'denied', ids: ['everything'], count: 1, digest: '' },
  before: '',
  after: '',
  reason: '',
  allowed: false,
};
const RUN: LedgerEntry = { ...ROW, seq: 5, what: 'approved', reason: 'looks right', subject: { kind: 'run', ids: ['r-1'], count: 1, digest: '' } };
const AUDITOR = somebody(['audit:read']);

test('rows tell who did what to what, and lead there; denials are marked', async () => {
  serve({ 'GET /api/v1/audit': { items: [ROW, DENIED, RUN], next: null } });
  const { container } = show(<AuditPage />, { me: AUDITOR });
  const first = (await screen.findByText('test orders')).closest('tr')!;
  expect(within(first).getByRole('link', { name: /^01a1e5c7/ })).toHaveAttribute('href', `/letters/${ROW.subject.ids[0]!}`);
  expect(first).toHaveTextContent('3 letters');
  expect(first).toHaveTextContent('and 1 more');
  expect(first).toHaveTextContent('PENDING→DISCARDED');
  expect(screen.getByRole('link', { name: 'r-1' })).toHaveAttribute('href', '/runs/r-1');
  const denied = screen.getByText('Denied').closest('tr')!;
  expect(denied).toHaveTextContent('letters:purge');
  expect(denied).toHaveTextContent(/For\s*everything/);
  expect(denied.textContent).not.toContain('\u202e');
  expect(within(first).queryByText('Denied')).toBeNull();
  await expectAccessible(container);
});

test.each([
  ['alert acknowledge', 'acknowledged the alert'],
  ['alert snooze', 'snoozed the alert'],
  ['alert wake', 'woke the alert'],
  ['alert resolve', 'resolved the alert'],
])('%s is told, leads to the alert, and can be filtered for', async (what, told) => {
  const row: LedgerEntry = { ...ROW, what, subject: { kind: 'alert', ids: ['i-1'], count: 1, digest: '' } };
  serve({ 'GET /api/v1/audit': { items: [row], next: null } });
  show(<AuditPage />, { me: AUDITOR });
  const shown = (await screen.findByRole('link', { name: 'i-1' })).closest('tr')!;
  expect(shown).toHaveTextContent(told);
  expect(within(shown).getByText('Alert')).toBeInTheDocument();
  expect(within(shown).getByRole('link', { name: 'i-1' })).toHaveAttribute('href', '/alerts/i-1');
  const choices = screen.getByRole('group', { name: 'Alerts' });
  expect(within(choices).getByRole('option', { name: told })).toHaveValue(what);
});

test('details have the request and every id', async () => {
  serve({ 'GET /api/v1/audit': { items: [ROW], next: null } });
  const { user, container } = show(<AuditPage />, { me: AUDITOR });
  await user.click(await screen.findByRole('button', { name: 'Details of row 7' }));
  expect(screen.getByText('req-77')).toBeInTheDocument();
  expect(screen.getByRole('link', { name: 'c' })).toHaveAttribute('href', '/letters/c');
  expect(screen.getByText('m1')).toBeInTheDocument();
  await expectAccessible(container);
});

test('the address is the filter', async () => {
  const sent = serve({ 'GET /api/v1/audit': { items: [], next: null } });
  const { user, router } = show(<AuditPage />, { me: AUDITOR, at: '/audit#who=ann&what=purged&denied=yes' });
  expect(await screen.findByText('No row matches')).toBeInTheDocument();
  expect(Object.fromEntries(sent.at(-1)!.query)).toEqual({ who: 'ann', what: 'purged', denied: 'true', limit: '50' });
  await user.selectOptions(screen.getByLabelText('Time'), '7d');
  await waitFor(() => expect(sent.at(-1)!.query.get('since')).not.toBeNull());
  const days = (Date.now() - Date.parse(sent.at(-1)!.query.get('since')!)) / 86_400_000;
  expect(days).toBeGreaterThan(6.99);
  expect(days).toBeLessThan(7.01);
  await user.click(screen.getAllByRole('button', { name: 'Clear the filter' })[0]!);
  await waitFor(() => expect(router.state.location.hash).toBe(''));
  expect(screen.getByLabelText('Who, by exact name')).toHaveValue('');
});

test('a name is asked for when somebody pauses, and typing goes on', async () => {
  const sent = serve({ 'GET /api/v1/audit': { items: [ROW], next: null } });
  const { user, router } = show(<AuditPage />, { me: AUDITOR, at: '/audit' });
  await user.type(await screen.findByLabelText('Who, by exact name'), 'bob');
  await waitFor(() => expect(router.state.location.hash).toBe('#who=bob'));
  expect(screen.getByLabelText('Who, by exact name')).toHaveFocus();
  await waitFor(() => expect(sent.at(-1)!.query.get('who')).toBe('bob'));
  expect(sent.map(({ query }) => query.get('who'))).not.toContain('b');
});

test('the next page begins where this one ends', async () => {
  const sent = serve({
    'GET /api/v1/audit': ({ query }: { query: URLSearchParams }) =>
      query.get('before') === '7' ? { items: [RUN], next: null } : { items: [ROW], next: 7 },
  });
  const { user } = show(<AuditPage />, { me: AUDITOR });
  await user.click(await screen.findByRole('button', { name: 'Load more' }));
  expect(await screen.findByRole('link', { name: 'r-1' })).toBeInTheDocument();
  expect(sent.at(-1)!.query.get('before')).toBe('7');
});

test('how to export what is shown, and how to verify', async () => {
  serve({ 'GET /api/v1/audit': { items: [ROW], next: null } });
  const { user } = show(<main><AuditPage /></main>, { me: AUDITOR, at: `/audit#${new URLSearchParams({ who: "o'neil; rm", time: '24h', denied: 'yes' }).toString()}` });
  await user.click(await screen.findByRole('button', { name: 'Export and verify' }));
  const dialog = await screen.findByRole('dialog');
  expect(dialog).toHaveTextContent(`redrive audit export --who='o'\\''neil; rm' --since 24h --denials > audit.jsonl`);
  expect(within(dialog).getByText('redrive audit verify')).toBeInTheDocument();
  await expectAccessible(dialog);
});

test('without the permission nothing is asked, and what is lacking is named', async () => {
  const sent = serve({});
  const { container } = show(<AuditPage />, { me: somebody(['audit:read'], ['orders']) });
  expect(screen.getByText(/needs the permission audit:read for all queues/)).toBeInTheDocument();
  expect(sent).toHaveLength(0);
  await expectAccessible(container);
});

test('a problem is told', async () => {
  serve({ 'GET /api/v1/audit': problem(403, 'ann lacks the permission audit:read') });
  show(<AuditPage />, { me: AUDITOR });
  expect(await screen.findByRole('alert')).toHaveTextContent('ann lacks the permission audit:read');
});

test('a time that is none is no time', async () => {
  const sent = serve({ 'GET /api/v1/audit': { items: [ROW], next: null } });
  show(<AuditPage />, { me: AUDITOR, at: '/#time=toString' });
  await screen.findByRole('table');
  expect(sent[0]?.query.get('since')).toBeNull();
});
