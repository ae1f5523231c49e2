import { fireEvent, screen, waitFor } from '@testing-library/react';
import { expect, test, vi } from 'vitest';
import { expectAccessible, problem, serve } from '@/shared/testing/render';
import { aLetter, AROUND, DATA, MASKED, open, REVEAL, reveal, SAVE, saves } from './edit.testing';
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
