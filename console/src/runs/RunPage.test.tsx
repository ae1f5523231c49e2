import { act, screen, waitFor, within } from '@testing-library/react';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { Permission, RunJson } from '@/api/types';
import { expectAccessible, serve, show, somebody, type Sent } from '@/shared/testing/render';
import { RunPage } from './RunPage';
import { aRun } from './samples.testing';

class Source extends EventTarget {
  static newest: Source | undefined;
  readyState = 0;
  readonly url: string;
  constructor(url: string) {
    super();
    this.url = url;
    Source.newest = this;
  }
  close() {
    this.readyState = 2;
  }
  tell(news: Partial<RunJson>) {
    this.dispatchEvent(new Event('open'));
    this.dispatchEvent(new MessageEvent('progress', { data: JSON.stringify(news) }));
  }
}

beforeEach(() => vi.stubGlobal('EventSource', Source));
afterEach(() => vi.unstubAllGlobals());

const ID = aRun().id;
const ALL: Permission[] = ['letters:read', 'runs:make', 'runs:approve'];

function serving(run: RunJson, more: Record<string, unknown> = {}): Sent[] {
  const history = [{ at: run.created_at, by: run.requested_by, what: 'requested', before: '', after: 'RUNNING', reason: run.reason }];
  return serve({
    [`GET /api/v1/runs/${ID}`]: { run, history },
    [`GET /api/v1/runs/${ID}/letters`]: { items: [], next: null },
    [`GET /api/v1/runs/${ID}/unsent`]: { items: [] },
    ...more,
  });
}

const open = (permissions: Permission[] = ALL, at = '') => show(<RunPage />, { me: somebody(permissions), at: `/runs/${ID}${at}`, path: '/runs/:id' });

test('progress comes by events, and is asked for while they are away', async () => {
  serving(aRun());
  const { container } = open();
  expect(await screen.findByText('0 of 100 sent')).toBeInTheDocument();
  expect(screen.getByText(/the live connection is away/)).toBeInTheDocument();
  const { progress } = aRun({ progress: { taken: 60, sent: 60, confirmed: 50, came_back_same: 4 } });
  act(() => Source.newest!.tell({ id: ID, status: 'RUNNING', remaining: 40, progress }));
  expect(await screen.findByText('60 of 100 sent')).toBeInTheDocument();
  expect(screen.getByText('Live')).toBeInTheDocument();
  expect(screen.getByText('Came back, same group').nextSibling).toHaveTextContent('4');
  expect(screen.getByText('Without word', { selector: 'dt' }).nextSibling).toHaveTextContent('6');
  await expectAccessible(container);
});

test('without events the run is asked about every few seconds', async () => {
  vi.useFakeTimers({ shouldAdvanceTime: true });
  const sent = serving(aRun());
  open();
  await screen.findByText('0 of 100 sent');
  const asked = () => sent.filter((each) => each.path === `/api/v1/runs/${ID}`).length;
  const before = asked();
  await act(() => vi.advanceTimersByTimeAsync(10_000));
  expect(asked()).toBeGreaterThan(before + 1);
  vi.useRealTimers();
});

test('a run is loaded once, and again when the stream tells of another state', async () => {
  const sent = serving(aRun());
  open();
  await screen.findByText('0 of 100 sent');
  const asked = () => sent.filter((each) => each.path === `/api/v1/runs/${ID}`).length;
  await act(() => Promise.resolve());
  expect(asked()).toBe(1);
  act(() => Source.newest!.tell({ id: ID, status: 'PAUSED' }));
  await waitFor(() => expect(asked()).toBe(2));
});

test('pausing is confirmed, with what it means', async () => {
  const sent = serving(aRun({ progress: { taken: 30, sent: 30 } }), { [`POST /api/v1/runs/${ID}/pause`]: { run: aRun({ status: 'PAUSED' }) } });
  const { user } = open();
  await user.click(await screen.findByRole('button', { name: 'Pause' }));
  const dialog = await screen.findByRole('dialog');
  expect(dialog).toHaveTextContent('70 letters wait until somebody resumes it');
  expect(sent.some((each) => each.path.endsWith('/pause'))).toBe(false);
  await user.type(within(dialog).getByLabelText(/^Why/), 'lunch');
  await user.click(within(dialog).getByRole('button', { name: 'Pause the run' }));
  await waitFor(() => expect(sent.find((each) => each.path.endsWith('/pause'))?.body).toEqual({ reason: 'lunch' }));
});

test('cancelling needs a reason and has its number', async () => {
  const sent = serving(aRun({ progress: { taken: 30, sent: 30 } }), { [`POST /api/v1/runs/${ID}/cancel`]: { run: aRun({ status: 'CANCELLED' }) } });
  const { user } = open();
  await user.click(await screen.findByRole('button', { name: 'Cancel run' }));
  const button = await screen.findByRole('button', { name: 'Cancel 70 unsent letters' });
  expect(button).toBeDisabled();
  await user.type(within(await screen.findByRole('dialog')).getByLabelText(/^Why/), 'wrong letters');
  await user.click(button);
  await waitFor(() => expect(sent.find((each) => each.path.endsWith('/cancel'))?.body).toEqual({ reason: 'wrong letters' }));
});

const AWAITING = { status: 'AWAITING_APPROVAL' as const, approval: { digest: 'd', expires_at: '2026-11-17T10:00:00Z', why: 'of or to payments', by: null, at: null } };

test('whoever asked cannot approve, and is told why', async () => {
  serving(aRun({ ...AWAITING, requested_by: 'Ann' }));
  open();
  const button = await screen.findByRole('button', { name: 'Approve' });
  expect(button).toBeDisabled();
  expect(screen.getByLabelText('You asked for this run: somebody else has to approve it')).toContainElement(button);
  expect(screen.getByRole('button', { name: 'Reject' })).toBeEnabled();
});

test('somebody else approves, and sees what', async () => {
  const edit = [{ op: 'set' as const, path: 'currency', value: 'EUR' }];
  const sent = serving(aRun({ ...AWAITING, edit }), { [`POST /api/v1/runs/${ID}/approve`]: { run: aRun() } });
  const { user } = open();
  expect(await screen.findByText('set currency = "EUR"')).toBeInTheDocument();
  expect(screen.getByText(/of or to payments/)).toBeInTheDocument();
  await user.click(screen.getByRole('button', { name: 'Approve' }));
  await user.click(await screen.findByRole('button', { name: 'Approve 100 letters' }));
  await waitFor(() => expect(sent.some((each) => each.path.endsWith('/approve'))).toBe(true));
});

test('without the permission approving is disabled with its name', async () => {
  serving(aRun(AWAITING));
  open(['letters:read']);
  const button = await screen.findByRole('button', { name: 'Approve' });
  expect(button).toBeDisabled();
  expect(button.closest('[role=group]')).toHaveAccessibleName('You lack the permission runs:approve');
});

test('a canary that stopped says why and where', async () => {
  serving(aRun({ status: 'STOPPED', ended_at: '2026-11-16T10:01:00Z', why: 'canary: 3 of 5 came back, 20% are allowed', canary: { steps: [1, 5], wait: 60, at_most_back: 0.2 }, stage: 1, progress: { taken: 5, sent: 5, came_back_same: 3, confirmed: 2 } }));
  open();
  expect(await screen.findByText(/canary: 3 of 5 came back/)).toBeInTheDocument();
  expect(screen.getByText('Too many came back (3 of 5)')).toBeInTheDocument();
  expect(screen.queryByRole('button', { name: /Pause|Resume|Cancel run/ })).toBeNull();
});

const outcome = (at: number, what: string) => ({
  letter_id: `01a1e173-9ed9-7000-000${at}`,
  redrive_id: `r${at}`,
  queue: 'orders',
  outcome: what,
  claimed_at: '2026-11-16T10:00:00Z',
  sent_at: '2026-11-16T10:00:01Z',
  outcome_at: null,
  group_before: 'g1',
  group_after: what === 'came back' ? 'g2' : null,
});

test('letters that came back are found behind pages of others, and lead to the filter', async () => {
  const pages = [
    { items: [outcome(1, 'confirmed')], next: 'r1' },
    { items: [outcome(2, 'came back'), outcome(3, 'confirmed')], next: null },
  ];
  const sent = serving(aRun({ status: 'DONE', ended_at: '2026-11-16T10:01:00Z', progress: { taken: 3, sent: 3, confirmed: 2, came_back_new: 1 } }), {
    [`GET /api/v1/runs/${ID}/letters`]: ({ query }: Sent) => pages[query.get('after') === 'r1' ? 1 : 0],
  });
  open(ALL, '#outcome=back');
  const link = await screen.findByRole('link', { name: 'Open 1 letter that came back' });
  expect(link).toHaveAttribute('href', `/letters#q=${encodeURIComponent('id:01a1e173-9ed9-7000-0002').replace(/%20/g, '+')}`);
  expect(screen.getByText('new group')).toBeInTheDocument();
  expect(screen.queryByText('Confirmed', { selector: 'td *' })).toBeNull();
  expect(sent.some((each) => each.query.get('after') === 'r1')).toBe(true);
});

test('what was not sent is told with why', async () => {
  serving(aRun({ status: 'DONE', progress: { passed_over: 1, refused: 0 } }), {
    [`GET /api/v1/runs/${ID}/unsent`]: { items: [{ letter_id: 'abc', outcome: 'not pending', reason: 'somebody else has dealt with it since' }] },
  });
  open();
  expect(await screen.findByText('somebody else has dealt with it since')).toBeInTheDocument();
});

test('letters in doubt are settled until none is left', async () => {
  let left = 250;
  const sent = serving(aRun({ status: 'CANCELLED', in_doubt: 250, progress: { in_hand: 250 } }), {
    [`POST /api/v1/runs/${ID}/settle`]: () => {
      const now = Math.min(100, left);
      left -= now;
      return { taken_as_sent: now, outcomes: [] };
    },
  });
  const { user } = open();
  await user.click(await screen.findByRole('button', { name: 'They were sent' }));
  const dialog = await screen.findByRole('dialog');
  await user.type(within(dialog).getByLabelText(/^Why/), 'seen there');
  await user.click(within(dialog).getByRole('button', { name: 'Take 250 letters as sent' }));
  expect(await screen.findByText('250 letters are settled')).toBeInTheDocument();
  const asked = sent.filter((each) => each.path.endsWith('/settle'));
  expect(asked.map((each) => each.body)).toEqual(Array(3).fill({ how: 'sent', reason: 'seen there' }));
});
