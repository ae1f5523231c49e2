import { screen, waitFor } from '@testing-library/react';
import { expect, test } from 'vitest';
import { useAddress } from './address';
import { SearchBox } from './SearchBox';
import { show } from './testing/render';

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
