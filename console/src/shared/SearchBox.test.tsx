import { act, screen, waitFor } from '@testing-library/react';
import { afterEach, expect, test, vi } from 'vitest';
import { useAddress } from './address';
import { SearchBox } from './SearchBox';
import { show } from './testing/render';

afterEach(() => vi.useRealTimers());

function Page() {
  const { get, set } = useAddress();
  return (
    <>
      <SearchBox label="Find" value={get('text')} onSearch={(text, replace) => set({ text }, { replace })} />
      <button type="button" onClick={() => set({ text: null })}>
        Clear
      </button>
    </>
  );
}

test('who types is not interrupted by the answer, and what clears the address clears the box', async () => {
  const { user, router } = show(<Page />);
  const box = screen.getByRole('textbox', { name: 'Find' });
  await user.type(box, 'time');
  await waitFor(() => expect(router.state.location.hash).toBe('#text=time'));
  expect(screen.getByRole('textbox', { name: 'Find' })).toHaveFocus();
  await user.type(box, 'out');
  await waitFor(() => expect(router.state.location.hash).toBe('#text=timeout'));
  await user.click(screen.getByRole('button', { name: 'Clear' }));
  await waitFor(() => expect(box).toHaveValue(''));
});

test('what was typed just before does not come back after it was cleared', async () => {
  vi.useFakeTimers({ shouldAdvanceTime: true });
  const { user, router } = show(<Page />);
  const box = screen.getByRole('textbox', { name: 'Find' });
  await user.type(box, 'time');
  await user.click(screen.getByRole('button', { name: 'Clear' }));
  await act(() => vi.advanceTimersByTimeAsync(1000));
  expect(router.state.location.hash).toBe('');
  expect(box).toHaveValue('');
});

test('what was typed just before does not come back after another address was opened', async () => {
  vi.useFakeTimers({ shouldAdvanceTime: true });
  const { user, router } = show(<Page />);
  const box = screen.getByRole('textbox', { name: 'Find' });
  await user.type(box, 'time');
  await act(() => router.navigate('/#text=other'));
  await act(() => vi.advanceTimersByTimeAsync(1000));
  expect(router.state.location.hash).toBe('#text=other');
  expect(box).toHaveValue('other');
});
