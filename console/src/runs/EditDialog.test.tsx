import { configure, fireEvent, screen, waitFor } from '@testing-library/react';
import { expect, test, vi } from 'vitest';
import type { Letter, Permission } from '@/api/types';
import { expectAccessible, problem, serve, show, somebody, type Sent } from '@/shared/testing/render';
import { EditDialog } from './EditDialog';
import { aPreview, USUAL } from './samples.testing';

// The editor draws with what jsdom lacks; what it is given and gives back is a text.
vi.mock('./PayloadMirror', () => ({
  default: ({ text, original, label, onChange }: { text: string; original: string | null; label: string; onChange: (text: string) => void }) => (
    <>
      <textarea aria-label={label} defaultValue={text} onChange={(event) => onChange(event.target.value)} />
      <output data-testid="original">{original}</output>
    </>
  ),
}));
configure({ asyncUtilTimeout: 10_000 });
vi.setConfig({ testTimeout: 40_000 });

const ALL: Permission[] = ['letters:read', 'letters:reveal', 'letters:edit', 'runs:make'];
const AROUND = ['{"message_id":"m","timestamp":"t","version":"1.0","source":"s","queue":"orders","data":', ',"metadata":{},"error":null,"retry_count":0}'] as const;
const DATA = '{"cpf":"529.982.247-25","big":12345678901234567890,"price":1.10}';

function aLetter(data: string, more: Partial<Letter> = {}, headers: unknown[] = [['tenant', 'acme']]): Letter {
  const message = {
    id: 'm',
    source: 's',
    queue: 'orders',
    sent_at: '2026-11-16T10:00:00Z',
    headers,
    key: null,
    key_encoding: null,
    body: AROUND[0] + data + AROUND[1],
    body_encoding: 'utf-8' as const,
    properties: null,
  };
  return { id: 'l1', status: 'PENDING', queue: 'orders', revision: 0, unreadable: null, message, revisions: [], failures: [], history: [], ...more } as unknown as Letter;
}

const MASKED = aLetter('{"cpf":"[masked]","big":12345678901234567890,"price":1.10}');
const REVEAL = 'POST /api/v1/dlq/l1/reveal';
const SAVE = 'POST /api/v1/dlq/l1/revisions';
const saves = (sent: Sent[]) => sent.filter((each) => each.path.endsWith('/revisions')).map((each) => each.body as Record<string, unknown>);

function open(letter: Letter = MASKED, permissions: Permission[] = ALL) {
  const onSaved = vi.fn();
  const onClose = vi.fn();
  const shown = show(<EditDialog letter={letter} opened onClose={onClose} onSaved={onSaved} />, { me: somebody(permissions), at: '/letters/l1' });
  return { ...shown, onSaved, onClose };
}

async function reveal(user: ReturnType<typeof open>['user']) {
  await user.type(await screen.findByLabelText(/^Why/), 'wrong price');
  await user.click(screen.getByRole('button', { name: 'Show the real text and edit it' }));
  return screen.findByRole('textbox', { name: 'Payload' });
}

test('what is edited is the real text, and what is saved has every byte of it', async () => {
  const sent = serve({ [REVEAL]: aLetter(DATA), [SAVE]: { number: 1 } });
  const { user, onSaved, baseElement } = open();
  expect(screen.queryByRole('textbox', { name: 'Payload' })).toBeNull();
  const editor = await reveal(user);
  await expectAccessible(baseElement);
  expect(editor).toHaveValue('{\n  "cpf": "529.982.247-25",\n  "big": 12345678901234567890,\n  "price": 1.10\n}');
  expect(document.body.textContent).not.toContain('[masked]');
  expect(screen.getByRole('button', { name: 'Save as a new revision' })).toBeDisabled();
  fireEvent.change(editor, { target: { value: (editor as HTMLTextAreaElement).value.replace('1.10', '1.20') } });
  await user.click(screen.getByRole('button', { name: 'Save as a new revision' }));
  await waitFor(() => expect(onSaved).toHaveBeenCalledWith(1));
  expect(saves(sent)).toEqual([{ reason: 'wrong price', body: AROUND[0] + DATA.replace('1.10', '1.20') + AROUND[1], body_encoding: 'utf-8' }]);
});

test('nothing of a masked letter can be saved: without revealing there is no editor', async () => {
  const sent = serve({ [REVEAL]: problem(403, 'not for you') });
  const { user } = open();
  await user.type(await screen.findByLabelText(/^Why/), 'because');
  await user.click(screen.getByRole('button', { name: 'Show the real text and edit it' }));
  expect(await screen.findByText('not for you')).toBeInTheDocument();
  expect(screen.queryByRole('textbox', { name: 'Payload' })).toBeNull();
  expect(screen.queryByRole('button', { name: /Save/ })).toBeNull();
  expect(saves(sent)).toEqual([]);
});

test('whoever may not reveal can change it by operations', async () => {
  const sent = serve({
    'GET /api/v1/run-plans/usual': USUAL,
    'GET /api/v1/queues': { items: [], incomplete: '' },
    'POST /api/v1/runs/preview': aPreview({ count: 1 }),
    'POST /api/v1/run-plans': { count: 1, approval: null },
  });
  const { user } = open(MASKED, ['letters:read', 'letters:edit', 'runs:make']);
  await user.type(await screen.findByLabelText(/^Why/), 'because');
  expect(screen.getByRole('button', { name: 'Show the real text and edit it' })).toBeDisabled();
  expect(screen.getByLabelText(/letters:reveal/)).toBeInTheDocument();
  await user.click(screen.getByRole('button', { name: 'Change it by operations instead' }));
  expect(await screen.findByLabelText('Place')).toBeInTheDocument();
  expect(sent.some((each) => each.path.endsWith('/reveal'))).toBe(false);
});

test('somebody quicker is shown, and what was not touched here stays theirs', async () => {
  let revealed = 0;
  let saved = 0;
  const theirs = aLetter(DATA.replace('"big"', '"mine":1,"big"'), { revision: 1, revisions: [{ number: 1, by: 'bob', at: '2026-11-16T10:00:00Z', reason: 'quick' }] as never }, [['tenant', 'other']]);
  const sent = serve({
    [REVEAL]: () => (++revealed === 1 ? aLetter(DATA) : theirs),
    [SAVE]: () => (++saved === 1 ? problem(412, 'edited meanwhile') : { number: 2 }),
  });
  const { user, onSaved } = open();
  const editor = await reveal(user);
  fireEvent.change(editor, { target: { value: '{"price": 2}' } });
  await user.click(screen.getByRole('button', { name: 'Save as a new revision' }));
  expect(await screen.findByText(/Somebody else was quicker: revision 1/)).toBeInTheDocument();
  expect(screen.getByRole('textbox', { name: 'Payload' })).toHaveValue('{"price": 2}');
  expect(screen.getByTestId('original')).toHaveTextContent('"mine": 1');
  expect(screen.getByRole('button', { name: 'Save as a new revision' })).toBeDisabled();
  await user.click(screen.getByRole('button', { name: 'Go on with mine, on top of theirs' }));
  await user.click(screen.getByRole('button', { name: 'Save as a new revision' }));
  await waitFor(() => expect(onSaved).toHaveBeenCalledWith(2));
  expect(saves(sent)[1]).toEqual({ reason: 'wrong price', body: `${AROUND[0]}{"price":2}${AROUND[1]}`, body_encoding: 'utf-8' });
});

test('theirs can be taken instead', async () => {
  let revealed = 0;
  serve({ [REVEAL]: () => (++revealed === 1 ? aLetter(DATA) : aLetter('{"theirs":1}', { revision: 1 })), [SAVE]: problem(412, 'edited meanwhile') });
  const { user } = open();
  fireEvent.change(await reveal(user), { target: { value: '{"price": 2}' } });
  await user.click(screen.getByRole('button', { name: 'Save as a new revision' }));
  await user.click(await screen.findByRole('button', { name: 'Take theirs, drop mine' }));
  await waitFor(() => expect(screen.getByRole('textbox', { name: 'Payload' })).toHaveValue('{\n  "theirs": 1\n}'));
  expect(screen.getByRole('button', { name: 'Save as a new revision' })).toBeDisabled();
});

test('data of an envelope that is no JSON cannot be saved, and the place is told', async () => {
  serve({ [REVEAL]: aLetter(DATA) });
  const { user } = open();
  fireEvent.change(await reveal(user), { target: { value: '{\n  "price": oops\n}' } });
  expect(screen.getByText(/Not JSON at line 2, character 12/)).toBeInTheDocument();
  expect(screen.getByRole('button', { name: 'Save as a new revision' })).toBeDisabled();
});

test('headers are edited by name and value; ids are locked', async () => {
  const sent = serve({ [REVEAL]: aLetter(DATA, {}, [['tenant', 'acme'], ['message-id', 'm'], ['n', '17']]), [SAVE]: { number: 1 } });
  const { user, onSaved } = open();
  await reveal(user);
  await user.click(screen.getByRole('tab', { name: 'Headers' }));
  const values = screen.getAllByLabelText('Value');
  expect(values[1]).toBeDisabled();
  expect(values[2]).toHaveValue('"17"');
  await user.clear(values[0]!);
  await user.type(values[0]!, 'other');
  await user.click(screen.getByRole('button', { name: 'Save as a new revision' }));
  await waitFor(() => expect(onSaved).toHaveBeenCalledWith(1));
  expect(saves(sent)).toEqual([{ reason: 'wrong price', headers: [['tenant', 'other'], ['message-id', 'm'], ['n', '17']] }]);
});

test('a schema is asked of the server, with what is about to be saved', async () => {
  const sent = serve({ [REVEAL]: aLetter(DATA), 'POST /api/v1/run-plans/samples': { items: [{ letter_id: 'l1', differences: [], refused: '', misfits: ['price: type: "string"'] }] } });
  const { user } = open();
  fireEvent.change(await reveal(user), { target: { value: '{"price": 2}' } });
  await user.click(screen.getByRole('tab', { name: 'Schema' }));
  fireEvent.change(screen.getByLabelText('JSON Schema'), { target: { value: '{"type": "object"}' } });
  await user.click(screen.getByRole('button', { name: 'Check' }));
  expect(await screen.findByText('price: type: "string"')).toBeInTheDocument();
  expect(sent.at(-1)!.body).toMatchObject({ ids: ['l1'], run: { schema: '{"type": "object"}', edit: [{ op: 'set-payload', payload: btoa('{"price":2}') }] } });
});

test('bytes are edited as hex', async () => {
  const letter = aLetter(DATA);
  letter.message.body = btoa('\xff\x00\x01');
  letter.message.body_encoding = 'base64';
  const sent = serve({ [REVEAL]: letter, [SAVE]: { number: 1 } });
  const { user, onSaved } = open();
  const editor = await reveal(user);
  expect(editor).toHaveValue('ff 00 01');
  fireEvent.change(editor, { target: { value: 'ff 00 0' } });
  expect(screen.getByText(/Pairs of hex digits/)).toBeInTheDocument();
  fireEvent.change(editor, { target: { value: 'ff 00 02' } });
  await user.click(screen.getByRole('button', { name: 'Save as a new revision' }));
  await waitFor(() => expect(onSaved).toHaveBeenCalledWith(1));
  expect(saves(sent)).toEqual([{ reason: 'wrong price', body: btoa('\xff\x00\x02'), body_encoding: 'base64' }]);
});

test('a body that is too long for a browser is left alone, whatever else is edited', async () => {
  const sent = serve({ [REVEAL]: aLetter(JSON.stringify('x'.repeat(3_000_000))), [SAVE]: { number: 1 } });
  const { user, onSaved } = open();
  await user.type(await screen.findByLabelText(/^Why/), 'tenant');
  await user.click(screen.getByRole('button', { name: 'Show the real text and edit it' }));
  expect(await screen.findByText('redrive edit l1')).toBeInTheDocument();
  expect(screen.getByRole('button', { name: 'Save as a new revision' })).toBeDisabled();
  await user.click(screen.getByRole('tab', { name: 'Headers' }));
  await user.type(screen.getByLabelText('Value'), '!');
  await user.click(screen.getByRole('button', { name: 'Save as a new revision' }));
  await waitFor(() => expect(onSaved).toHaveBeenCalledWith(1));
  expect(saves(sent)).toEqual([{ reason: 'tenant', headers: [['tenant', 'acme!']] }]);
});

test('save and redrive goes on with the redrive dialog', async () => {
  serve({
    [REVEAL]: aLetter(DATA),
    [SAVE]: { number: 1 },
    'GET /api/v1/run-plans/usual': USUAL,
    'GET /api/v1/queues': { items: [], incomplete: '' },
    'POST /api/v1/runs/preview': aPreview({ count: 1 }),
    'POST /api/v1/run-plans': { count: 1, approval: null },
  });
  const { user } = open();
  fireEvent.change(await reveal(user), { target: { value: '{"price": 2}' } });
  await user.click(screen.getByRole('button', { name: 'Save and redrive' }));
  expect(await screen.findByRole('button', { name: 'Redrive 1 letter' })).toBeInTheDocument();
});

test('what was changed is not lost by closing without a question', async () => {
  serve({ [REVEAL]: aLetter(DATA) });
  const { user, onClose } = open();
  fireEvent.change(await reveal(user), { target: { value: '{}' } });
  await user.click(screen.getByRole('button', { name: 'Cancel' }));
  expect(onClose).not.toHaveBeenCalled();
  await user.click(await screen.findByRole('button', { name: 'Close without saving' }));
  await waitFor(() => expect(onClose).toHaveBeenCalled());
});

test('an edit is taken back without revealing anything', async () => {
  const sent = serve({ [SAVE]: { number: 3 } });
  const { user, onSaved } = open({ ...MASKED, revision: 2 });
  await user.type(await screen.findByLabelText(/^Why/), 'was right before');
  await user.click(screen.getByRole('button', { name: 'Back to the original' }));
  await waitFor(() => expect(onSaved).toHaveBeenCalledWith(3));
  expect(saves(sent)).toEqual([{ reason: 'was right before', revert_to: 0 }]);
});

test('only pending letters are edited', async () => {
  serve({});
  open({ ...MASKED, status: 'RESOLVED' });
  expect(await screen.findByText(/Only pending letters/)).toBeInTheDocument();
});
