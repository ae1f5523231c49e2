import { fireEvent, screen, waitFor } from '@testing-library/react';
import { expect, test, vi } from 'vitest';
import { problem, serve } from '@/shared/testing/render';
import { aLetter, AROUND, DATA, open, REVEAL, reveal, SAVE, saves } from './edit.testing';

// The editor draws with what jsdom lacks; what it is given and gives back is a text.
vi.mock('./PayloadMirror', () => ({
  default: ({ text, original, label, onChange }: { text: string; original: string | null; label: string; onChange: (text: string) => void }) => (
    <>
      <textarea aria-label={label} defaultValue={text} onChange={(event) => onChange(event.target.value)} />
      <output data-testid="original">{original}</output>
    </>
  ),
}));

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

test('what is typed while a revision is saved stays, whoever was quicker', async () => {
  let revealed = 0;
  let refuse: (answer: Response) => void = () => undefined;
  const theirs = aLetter('{"theirs":1}', { revision: 1 }, [['tenant', 'other']]);
  const sent = serve({
    [REVEAL]: () => (++revealed === 1 ? aLetter(DATA) : theirs),
    [SAVE]: () => new Promise<Response>((done) => (refuse = done)),
  });
  const { user } = open();
  await reveal(user);
  await user.click(screen.getByRole('tab', { name: 'Headers' }));
  await user.type(screen.getByLabelText('Value'), '!');
  await user.click(screen.getByRole('button', { name: 'Save as a new revision' }));
  await waitFor(() => expect(saves(sent)).toHaveLength(1));
  await user.type(screen.getByLabelText('Value'), '?');
  await user.click(screen.getByRole('tab', { name: 'Payload' }));
  fireEvent.change(await screen.findByRole('textbox', { name: 'Payload' }), { target: { value: '{"price": 3}' } });
  refuse(problem(412, 'edited meanwhile'));
  expect(await screen.findByText(/Somebody else was quicker: revision 1/)).toBeInTheDocument();
  expect(screen.getByRole('textbox', { name: 'Payload' })).toHaveValue('{"price": 3}');
  await user.click(screen.getByRole('button', { name: 'Go on with mine, on top of theirs' }));
  await user.click(screen.getByRole('button', { name: 'Save as a new revision' }));
  await waitFor(() => expect(saves(sent)).toHaveLength(2));
  expect(saves(sent)[1]).toMatchObject({ body: `${AROUND[0]}{"price":3}${AROUND[1]}`, headers: [['tenant', 'acme!?']] });
});

test('a text stays a text, though theirs are bytes', async () => {
  let revealed = 0;
  const theirs = aLetter(DATA, { revision: 1 });
  Object.assign(theirs.message, { body: btoa('\xff\x00'), body_encoding: 'base64' });
  let saved = 0;
  const sent = serve({
    [REVEAL]: () => (++revealed === 1 ? aLetter(DATA) : theirs),
    [SAVE]: () => (++saved === 1 ? problem(412, 'edited meanwhile') : { number: 2 }),
  });
  const { user, onSaved } = open();
  fireEvent.change(await reveal(user), { target: { value: '{"price": 2}' } });
  await user.click(screen.getByRole('button', { name: 'Save as a new revision' }));
  await user.click(await screen.findByRole('button', { name: 'Go on with mine, on top of theirs' }));
  expect(screen.getByRole('textbox', { name: 'Payload' })).toHaveValue('{"price": 2}');
  await user.click(screen.getByRole('button', { name: 'Save as a new revision' }));
  await waitFor(() => expect(onSaved).toHaveBeenCalledWith(2));
  expect(saves(sent)[1]).toMatchObject({ body: `${AROUND[0]}{"price":2}${AROUND[1]}`, body_encoding: 'utf-8' });
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
