import { screen, waitFor, within } from '@testing-library/react';
import { afterEach, expect, test, vi } from 'vitest';
import type { Letter } from '@/api/types';
import { ptBR } from '@/locales/pt-BR';
import { expectAccessible, serve, show, somebody, type Sent } from '@/shared/testing/render';
import { LetterPage } from './LetterPage';
import { aFailure, aLetter, aLine } from './testing-letters';

vi.mock('@/runs/RedriveDialog', () => ({ RedriveDialog: ({ opened }: { opened: boolean }) => (opened ? <p>redrive dialog</p> : null) }));
vi.mock('@/runs/EditDialog', () => ({ EditDialog: ({ opened }: { opened: boolean }) => (opened ? <p>edit dialog</p> : null) }));

const live = vi.hoisted((): { every: number | false } => ({ every: false }));
vi.mock('@/shared/live', () => ({ useLiveEvery: () => live.every }));
afterEach(() => {
  live.every = false;
});

const operator = somebody(['letters:read', 'letters:decide', 'letters:edit', 'letters:reveal', 'runs:make']);

function showLetter(letter: Letter, { at = '', me = operator, replies = {}, ...more }: { at?: string; me?: typeof operator; replies?: object; language?: 'pt-BR'; messages?: typeof ptBR } = {}) {
  const sent = serve({
    [`GET /api/v1/dlq/${letter.id}`]: letter,
    [`GET /api/v1/dlq/${letter.id}/redrives`]: { items: [] },
    [`GET /api/v1/dlq/${letter.id}/related`]: { items: [aLine('other')] },
    ...replies,
  });
  return { sent, ...show(<LetterPage />, { at: `/letters/${letter.id}${at}`, path: '/letters/:id', me, ...more }) };
}

const frame = (name: string, own: boolean) => ({ file: `/app/${name}.py`, line: 7, function: name, source: `call_${name}()`, own });

test('the last failure first: its causes, own frames shown, those of libraries folded', async () => {
  const chain = [
    { type: 'KeyError', text: "'customer'", link: 'cause', frames: [frame('inner', true)] },
    { type: 'shop.NoCustomer', text: 'no customer', link: '', frames: [frame('handler', true), frame('lib_a', false), frame('lib_b', false), frame('charge', true)] },
  ];
  const { user, container } = showLetter(aLetter({ failures: [aFailure(1, '2026-03-01T12:00:01Z'), aFailure(2, '2026-03-01T12:00:09Z', { chain })] }));
  expect(await screen.findByText('shop.NoCustomer')).toBeInTheDocument();
  expect(screen.getByText('Caused by')).toBeInTheDocument();
  expect(screen.getByText('call_charge()')).toBeInTheDocument();
  expect(screen.queryByText('call_lib_a()')).not.toBeInTheDocument();
  await user.click(screen.getByRole('button', { name: '2 library frames' }));
  expect(screen.getByText('call_lib_a()')).toBeInTheDocument();
  await expectAccessible(container);
  await user.click(screen.getByRole('button', { name: 'Earlier attempt' }));
  expect(await screen.findByText('timed out 1')).toBeInTheDocument();
});

test('a link leads to a tab, and the tab to a link', async () => {
  const { user, router } = showLetter(aLetter(), { at: '#tab=payload' });
  expect(await screen.findByText('12345678901234567890')).toBeInTheDocument();
  await user.click(screen.getByRole('tab', { name: /Story/ }));
  await waitFor(() => expect(router.state.location.hash).toBe('#tab=story'));
  const story = await screen.findByRole('list', { name: 'The story of this message' });
  expect(within(story).getAllByRole('listitem').map((each) => each.textContent)).toEqual([
    expect.stringContaining('Sent'),
    expect.stringContaining('Attempt 1 failed'),
    expect.stringContaining('Attempt 2 failed'),
    expect.stringContaining('Dead-lettered'),
  ]);
  expect(within(story).getByText('30s')).toBeInTheDocument();
});

test('masked until a reason is given; who is told is said before', async () => {
  const masked = aLetter({ message: { ...aLetter().message, body: '{"cpf":"[masked]"}' } });
  const revealed = { ...masked, message: { ...masked.message, body: '{"cpf":"529.982.247-25"}' } };
  const { sent, user } = showLetter(masked, { at: '#tab=payload', replies: { 'POST /api/v1/dlq/letter-1/reveal': revealed } });
  await user.click(await screen.findByRole('button', { name: 'Reveal' }));
  const dialog = await screen.findByRole('dialog');
  expect(dialog).toHaveTextContent('Your name (ann)');
  expect(within(dialog).getByRole('button', { name: 'Reveal this letter' })).toBeDisabled();
  await user.type(within(dialog).getByLabelText(/Why/), 'customer called');
  await user.click(within(dialog).getByRole('button', { name: 'Reveal this letter' }));
  expect(await screen.findByText('"529.982.247-25"')).toBeInTheDocument();
  expect(sent.find((each: Sent) => each.path.endsWith('/reveal'))?.body).toEqual({ reason: 'customer called' });
  await user.click(screen.getByRole('button', { name: 'Mask it again' }));
  expect(await screen.findByText('"[masked]"')).toBeInTheDocument();
});

test('whoever may not reveal sees why', async () => {
  showLetter(aLetter(), { at: '#tab=payload', me: somebody() });
  expect(await screen.findByRole('button', { name: 'Reveal' })).toBeDisabled();
  expect(screen.getByRole('group', { name: /letters:reveal for the queue orders/ })).toBeInTheDocument();
});

test('data of an envelope is shown by itself, and the whole body too', async () => {
  const body =
    '{"message_id":"m","timestamp":"t","version":"1.0","source":"s","queue":"q","data":{"n":1.10},"metadata":{"correlation_id":"corr-7"},"error":null,"retry_count":0}';
  const { user } = showLetter(aLetter({ message: { ...aLetter().message, body } }), { at: '#tab=payload' });
  expect(await screen.findByText('1.10')).toBeInTheDocument();
  expect(screen.queryByText('"corr-7"')).not.toBeInTheDocument();
  await user.click(screen.getByText('Whole body'));
  expect(await screen.findByText('"corr-7"')).toBeInTheDocument();
});

test('of a long body the beginning comes first, and all of it when it is asked for', async () => {
  const whole = `{"long":"${'x'.repeat(2_000_000)}","end":12345678901234567891}`;
  const message = { ...aLetter().message, body: whole.slice(0, 1_500_000), body_size: whole.length };
  const { sent, user } = showLetter(aLetter({ message }), {
    at: '#tab=payload',
    replies: { 'GET /api/v1/dlq/letter-1/body': () => new Response(whole) },
  });
  await user.click(await screen.findByRole('button', { name: 'Load all 1,953 KiB' }));
  expect(await screen.findByText('12345678901234567891')).toBeInTheDocument();
  expect(screen.queryByText(/^The first/)).not.toBeInTheDocument();
  expect(sent.find((each) => each.path === '/api/v1/dlq/letter-1')?.query.get('most_bytes')).toBe('2097152');
});

test('bytes that are no text are hex; text of what is no UTF-8 does not break', async () => {
  const message = { ...aLetter().message, body: 'eyJuIjogIkpv4yJ9', body_encoding: 'base64' as const };
  const { user } = showLetter(aLetter({ message }), { at: '#tab=payload' });
  expect(await screen.findByText(/7b 22 6e 22 3a 20 22 4a 6f e3 22 7d/)).toBeInTheDocument();
  await user.click(screen.getByText('Raw'));
  expect(await screen.findByText(/"Jo/)).toBeInTheDocument();
});

test.each([
  ['shredded', 'gone for good'],
  ['key missing', 'redrive doctor'],
  ['damaged', 'Restore it from a backup'],
] as const)('what is %s says why, and cannot be sent', async (unreadable, why) => {
  showLetter(aLetter({ unreadable, message: { ...aLetter().message, body: null } }), { at: '#tab=payload' });
  expect(await screen.findAllByText(new RegExp(why))).not.toHaveLength(0);
  expect(screen.getByRole('button', { name: 'Redrive' })).toBeDisabled();
  expect(screen.getAllByRole('group', { name: 'What the letter holds cannot be read' })).toHaveLength(2);
});

test('ten thousand headers are some hundred nodes, and found by what is typed', async () => {
  const headers = Array.from({ length: 10_000 }, (_, at) => [`x-${at}`, `value ${at}`]);
  const { user, container } = showLetter(aLetter({ message: { ...aLetter().message, headers } }), { at: '#tab=headers' });
  expect(await screen.findByText('100 of 10,000')).toBeInTheDocument();
  expect(container.querySelectorAll('tbody tr')).toHaveLength(100);
  await user.type(screen.getByRole('textbox', { name: 'Find in headers' }), 'x-9876');
  expect(await screen.findByText('value 9876')).toBeInTheDocument();
  expect(screen.getByText('1 of 1')).toBeInTheDocument();
});

test('r and e open what the status allows', async () => {
  const { user } = showLetter(aLetter());
  await screen.findByText('timed out 2');
  await user.keyboard('r');
  expect(await screen.findByText('redrive dialog')).toBeInTheDocument();
  await user.keyboard('e');
  expect(await screen.findByText('edit dialog')).toBeInTheDocument();
});

test('what the status does not allow says so', async () => {
  const { user } = showLetter(aLetter({ status: 'RESOLVED', how: 'confirmed' }));
  await screen.findByText('timed out 2');
  expect(screen.getByRole('button', { name: 'Edit' })).toBeDisabled();
  await user.keyboard('re');
  expect(screen.queryByText(/dialog/)).not.toBeInTheDocument();
  await user.click(screen.getByRole('button', { name: 'More' }));
  expect(await screen.findByRole('menuitem', { name: /Discard Not possible while the letter is resolved/ })).toHaveAttribute('aria-disabled', 'true');
  expect(screen.getByRole('menuitem', { name: 'Restore' })).not.toHaveAttribute('aria-disabled');
});

test('copied as a command, nothing of it is run', async () => {
  const { user } = showLetter(aLetter({ id: "x'$(id)" }), {
    replies: { "GET /api/v1/dlq/x'%24(id)": aLetter({ id: "x'$(id)" }), "GET /api/v1/dlq/x'$(id)": aLetter({ id: "x'$(id)" }) },
    at: '',
  });
  await user.click(await screen.findByRole('button', { name: 'Copy as' }));
  await user.click(await screen.findByRole('menuitem', { name: 'redrive command' }));
  expect(await navigator.clipboard.readText()).toBe(String.raw`redrive show -- 'x'\''$(id)'`);
});

test('a letter that changes meanwhile is shown as it is now', async () => {
  live.every = 30;
  let letter = aLetter();
  showLetter(letter, {
    replies: {
      'GET /api/v1/dlq/letter-1': () => letter,
      'POST /api/v1/dlq-search': () => ({ items: [letter], next: null, previous: null, count: null, unsearched: 0 }),
    },
  });
  expect(await screen.findByText('Pending')).toBeInTheDocument();
  letter = aLetter({ status: 'REDRIVEN', changed_at: '2026-03-01T12:09:00+00:00' });
  expect(await screen.findByText('Redriven')).toBeInTheDocument();
});

test('related letters are told by the server', async () => {
  showLetter(aLetter({ message: { ...aLetter().message, headers: [['x-correlation-id', 'c-1']] } }), { at: '#tab=related' });
  expect(await screen.findByText('no customer other')).toBeInTheDocument();
  expect(screen.getByRole('link', { name: 'Show them in the list' })).toHaveAttribute('href', '/letters#q=correlation%3Ac-1');
});

test('a letter that is not there says what may have happened', async () => {
  serve({});
  show(<LetterPage />, { at: '/letters/none', path: '/letters/:id' });
  expect(await screen.findByText('There is no such letter')).toBeInTheDocument();
});

test('in Portuguese', async () => {
  showLetter(aLetter(), { at: '#tab=story', language: 'pt-BR', messages: ptBR });
  expect(await screen.findByText('Tentativa 1 falhou')).toBeInTheDocument();
});
