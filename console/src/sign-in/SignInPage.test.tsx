import { screen, waitFor } from '@testing-library/react';
import { expect, test, vi } from 'vitest';
import { expectAccessible, problem, serve, show } from '@/shared/testing/render';
import { SignInPage } from './SignInPage';

const NO_CONTENT = new Response(null, { status: 204 });

test('a user signs in', async () => {
  const sent = serve({ 'POST /api/v1/session': () => NO_CONTENT });
  const { user, container } = show(<SignInPage />);
  await expectAccessible(container);
  await user.type(screen.getByLabelText('User'), 'ann');
  await user.type(screen.getByLabelText('Password'), 'a long enough password');
  await user.click(screen.getByRole('button', { name: 'Sign in' }));
  await waitFor(() => expect(sent).toHaveLength(1));
  expect(sent[0]).toMatchObject({ method: 'POST', path: '/api/v1/session', body: { user: 'ann', password: 'a long enough password' } });
});

test('a refusal does not say which half was wrong, and a limit says how long to wait', async () => {
  const replies: Record<string, unknown> = { 'POST /api/v1/session': problem(401, 'a valid token or session is needed') };
  serve(replies);
  const { user } = show(<SignInPage />);
  await user.type(screen.getByLabelText('User'), 'ann');
  await user.type(screen.getByLabelText('Password'), 'wrong{Enter}');
  expect(await screen.findByText('User or password is not right.')).toBeInTheDocument();
  replies['POST /api/v1/session'] = problem(429, 'too many failed attempts', { remedy: 'wait, then try again' });
  await user.click(screen.getByRole('button', { name: 'Sign in' }));
  expect(await screen.findByText('too many failed attempts')).toBeInTheDocument();
});

test('the code of the first start signs in', async () => {
  const sent = serve({ 'POST /api/v1/session': () => NO_CONTENT });
  const { user } = show(<SignInPage />);
  await user.click(screen.getByRole('button', { name: 'First start: I have a one-time code' }));
  await user.type(screen.getByLabelText('One-time code'), ' abc-123 {Enter}');
  await waitFor(() => expect(sent[0]?.body).toEqual({ code: 'abc-123' }));
});

test('a link with a code signs in by itself, once, and leaves no code in the address', async () => {
  const sent = serve({ 'POST /api/v1/session': () => NO_CONTENT });
  window.history.replaceState(null, '', '/sign-in#code=abc-123');
  show(<SignInPage />, { at: '/sign-in#code=abc-123' });
  await waitFor(() => expect(sent).toHaveLength(1));
  expect(sent[0]!.body).toEqual({ code: 'abc-123' });
  expect(window.location.hash).toBe('');
  vi.unstubAllGlobals();
});
