import { screen, waitFor } from '@testing-library/react';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { serve } from '@/shared/testing/render';

beforeEach(() => {
  document.body.replaceChildren(Object.assign(document.createElement('div'), { id: 'root' }));
  vi.resetModules();
});
afterEach(() => vi.doUnmock('./locales/messages'));

test('without the texts of a language the page says so in both, and how to go on', async () => {
  vi.doMock('./locales/messages', () => ({ preferred: () => 'en', load: () => Promise.reject(new Error('no answer')) }));
  const logged = vi.spyOn(console, 'error').mockReturnValue();
  await import('./main');
  expect(await screen.findByRole('alert')).toHaveTextContent('Redrive could not be loaded');
  expect(screen.getByRole('alert')).toHaveTextContent('Não foi possível carregar o Redrive');
  expect(screen.getByRole('button', { name: 'Reload' })).toBeEnabled();
  expect(screen.getByRole('button', { name: 'Recarregar' })).toBeEnabled();
  expect(logged).toHaveBeenCalledOnce();
});

test('a browser that keeps nothing for us shows the console all the same', async () => {
  const blocked = () => {
    throw new DOMException('The operation is insecure.', 'SecurityError');
  };
  vi.spyOn(window, 'localStorage', 'get').mockImplementation(blocked);
  serve({ 'GET /api/v1/session': new Response(null, { status: 401 }) });
  await import('./main');
  await waitFor(() => expect(screen.getByRole('textbox', { name: 'User' })).toBeInTheDocument());
});
