import { screen, waitFor, within } from '@testing-library/react';
import { expect, test, vi } from 'vitest';
import type { Permission } from '@/api/types';
import { ptBR } from '@/locales/pt-BR';
import { expectAccessible, problem, serve, show, somebody, type Sent } from '@/shared/testing/render';
import { RedriveDialog } from './RedriveDialog';
import type { Chosen } from '@/api/letter-lists';
import { aPreview, aRun, USUAL } from './samples.testing';

const ALL: Permission[] = ['letters:read', 'runs:make', 'letters:edit'];

function usual(more: Record<string, unknown> = {}): Record<string, unknown> {
  return {
    'GET /api/v1/run-plans/usual': USUAL,
    'GET /api/v1/queues': { items: [], incomplete: '' },
    'POST /api/v1/runs/preview': aPreview(),
    'POST /api/v1/run-plans': { count: 1204, approval: null },
    'POST /api/v1/runs': { run: aRun({ total: 1204 }) },
    ...more,
  };
}

/** Bodies as text, where numbers that JavaScript has none for stay what they are; and the keys that were sent. */
function listen(): { bodies: string[]; keys: string[] } {
  const heard = { bodies: [] as string[], keys: [] as string[] };
  const served = fetch;
  vi.stubGlobal('fetch', (url: string, init: RequestInit = {}) => {
    if (typeof init.body === 'string') heard.bodies.push(init.body);
    const key = (init.headers as Record<string, string>)['idempotency-key'];
    if (key !== undefined) heard.keys.push(key);
    return served(url, init);
  });
  return heard;
}

function open(selection: Chosen = { query: 'queue:orders' }, more: { withEdit?: boolean; permissions?: Permission[]; onMade?: (id: string) => void } = {}) {
  const { permissions = ALL, ...props } = more;
  return show(<RedriveDialog selection={selection} count={1300} opened onClose={vi.fn()} {...props} />, { me: somebody(permissions), at: '/letters' });
}

const made = (sent: Sent[]) => sent.filter((each) => each.method === 'POST' && each.path === '/api/v1/runs');

test('the number in the button is the one that is sent, with the reason, and no more than that', async () => {
  const sent = serve(usual());
  const onMade = vi.fn();
  const { user, router, baseElement } = open(undefined, { onMade });
  const button = await screen.findByRole('button', { name: 'Redrive 1,204 letters' });
  expect(screen.getByText('of 1,300 that were selected')).toBeInTheDocument();
  expect(screen.getByText(/last time 40 % came through/)).toBeInTheDocument();
  await expectAccessible(baseElement);
  await user.click(button);
  expect(screen.getByText('Say why.')).toBeInTheDocument();
  expect(made(sent)).toEqual([]);
  await user.type(screen.getByLabelText(/^Why/), 'the fix is out');
  await user.click(button);
  await waitFor(() => expect(router.state.location.pathname).toBe(`/runs/${aRun().id}`));
  expect(onMade).toHaveBeenCalledWith(aRun().id);
  expect(made(sent)[0]!.body).toMatchObject({ selection: { q: 'queue:orders' }, at_most: 1204, reason: 'the fix is out' });
});

test('asking again after no answer is asking for the same run', async () => {
  let tries = 0;
  serve(usual({ 'POST /api/v1/runs': () => (++tries === 1 ? problem(503, 'the store is away') : { run: aRun() }) }));
  const { keys: used } = listen();
  const { user, router } = open();
  const button = await screen.findByRole('button', { name: 'Redrive 1,204 letters' });
  await user.type(screen.getByLabelText(/^Why/), 'again{Enter}');
  expect(await screen.findByText('the store is away')).toBeInTheDocument();
  await user.click(button);
  await waitFor(() => expect(router.state.location.pathname).toContain('/runs/'));
  expect(used).toHaveLength(2);
  expect(new Set(used).size).toBe(1);
});

test('a rule that asks for a second person is told before', async () => {
  const approval = { digest: 'd', expires_at: '2026-11-17T10:00:00Z', why: '1204 letters are more than 1000', by: null, at: null };
  serve(usual({ 'POST /api/v1/run-plans': { count: 1204, approval } }));
  open();
  expect(await screen.findByRole('button', { name: 'Ask for approval of 1,204 letters' })).toBeEnabled();
  const note = screen.getByRole('note');
  expect(note).toHaveTextContent('1204 letters are more than 1000');
  expect(note).toHaveTextContent('runs:approve');
});

test('a check that says stop keeps it from being made', async () => {
  const checks = [{ name: 'target', level: 'stop' as const, text: "the broker has no queue 'orders'" }];
  serve(usual({ 'POST /api/v1/runs/preview': aPreview({ checks, worst: 'stop' }) }));
  open();
  expect(await screen.findByText(/the broker has no queue/)).toBeInTheDocument();
  await waitFor(() => expect(screen.getByRole('button', { name: 'Redrive 1,204 letters' })).toBeDisabled());
});

test('nothing to send is told', async () => {
  serve(usual({ 'POST /api/v1/runs/preview': aPreview({ count: 0, worst: 'stop' }), 'POST /api/v1/run-plans': problem(404, 'no pending letter matches') }));
  open();
  expect(await screen.findByRole('button', { name: 'Nothing to redrive' })).toBeDisabled();
});

test('a preview that could not count everything is told as that, and the button has the true number', async () => {
  serve(usual({ 'POST /api/v1/runs/preview': aPreview({ count: 10_000, exact: false }), 'POST /api/v1/run-plans': { count: 73_210, approval: null } }));
  open();
  expect(await screen.findByRole('button', { name: 'Redrive 73,210 letters' })).toBeInTheDocument();
  expect(screen.getByText('73,210 letters')).toBeInTheDocument();
});

test('whoever may not make runs sees it disabled with the permission', async () => {
  serve(usual());
  open(undefined, { permissions: ['letters:read'] });
  const button = await screen.findByRole('button', { name: 'Redrive 1,204 letters' });
  expect(button).toBeDisabled();
  expect(screen.getByLabelText('You lack the permission runs:make')).toContainElement(button);
});

test('pace, canary and target are sent as they were typed', async () => {
  const sent = serve(usual());
  const { user } = open({ ids: ['a', 'b'] });
  await user.type(await screen.findByLabelText(/^Letters per second/), '2,5');
  await user.click(screen.getByLabelText(/^Canary/));
  await user.clear(screen.getByLabelText('Steps'));
  await user.type(screen.getByLabelText('Steps'), '5, 3');
  expect(screen.getByText('Rising whole numbers with commas between them.')).toBeInTheDocument();
  await user.clear(screen.getByLabelText('Steps'));
  await user.type(screen.getByLabelText('Steps'), '1, 5 50');
  await user.click(screen.getByLabelText('Another queue'));
  await user.type(screen.getByPlaceholderText('Name of the queue'), 'orders-slow');
  await user.type(screen.getByLabelText(/^Why/), 'slowly');
  const button = await screen.findByRole('button', { name: 'Redrive 1,204 letters' });
  await waitFor(() => expect(button).toBeEnabled());
  await user.click(button);
  await waitFor(() => expect(made(sent)).toHaveLength(1));
  expect(made(sent)[0]!.body).toMatchObject({
    selection: { ids: ['a', 'b'] },
    at_most: null,
    rate: 2.5,
    canary: { steps: [1, 5, 50], wait: 300, at_most_back: 0.2 },
    target: 'orders-slow',
    to_origin: false,
  });
});

test('operations carry every digit, and samples show what they do', async () => {
  const samples = [{ letter_id: '01a1e173-9ed9-7000', differences: ['~ customer.id: 17 -> 12345678901234567890'], refused: '', misfits: [] }];
  serve(usual({ 'POST /api/v1/runs/preview': aPreview({ samples }) }));
  const { bodies } = listen();
  const { user } = open(undefined, { withEdit: true });
  await user.type(await screen.findByLabelText('Place'), 'customer.id');
  await user.type(screen.getByLabelText(/^Value/), '12345678901234567890');
  expect(screen.getByText(/Sent as a number/)).toBeInTheDocument();
  expect(await screen.findByText('~ customer.id: 17 -> 12345678901234567890')).toBeInTheDocument();
  await waitFor(() => expect(bodies.at(-1)).toContain('"op":"set","path":"customer.id","value":12345678901234567890}'));
});

test('letters that an edit does not fit have to be accepted first', async () => {
  const samples = [{ letter_id: '01a1e173-9ed9-7000', differences: [], refused: 'operation 1 (remove x): nothing is there', misfits: [] }];
  serve(usual({ 'POST /api/v1/runs/preview': aPreview({ samples }) }));
  const { user } = open(undefined, { withEdit: true });
  await user.type(await screen.findByLabelText('Place'), 'x');
  expect(await screen.findByText(/nothing is there/)).toBeInTheDocument();
  const button = await screen.findByRole('button', { name: 'Redrive 1,204 letters' });
  expect(button).toBeDisabled();
  await user.click(screen.getByLabelText(/Go on all the same/));
  expect(button).toBeEnabled();
});

test('it speaks Portuguese', async () => {
  serve(usual());
  show(<RedriveDialog selection={{ query: '' }} count={undefined} opened onClose={vi.fn()} />, { me: somebody(ALL), language: 'pt-BR', messages: ptBR });
  const dialog = await screen.findByRole('dialog');
  expect(await within(dialog).findByRole('button', { name: 'Reenviar 1.204 mensagens' })).toBeInTheDocument();
});
