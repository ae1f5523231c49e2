import { screen, waitFor } from '@testing-library/react';
import { useRef, useState } from 'react';
import { expect, test } from 'vitest';
import { show } from './testing/render';
import { useFocusBack } from './useFocusBack';

interface Given {
  opener?: HTMLElement | null;
  onClose: () => void;
}

function Asking({ opener = null, onClose }: Given) {
  useFocusBack(opener);
  return (
    <button type="button" autoFocus onClick={onClose}>
      Close
    </button>
  );
}

/** Two ways to open it: by a button that stays, and by one that is gone once it is clicked. */
function Page() {
  const [by, setBy] = useState<'button' | 'menu' | null>(null);
  const target = useRef<HTMLButtonElement>(null);
  const [opener, setOpener] = useState<HTMLElement | null>(null);
  return (
    <>
      <button type="button" ref={target} onClick={() => setBy('button')}>
        Open
      </button>
      {by === null && (
        <button
          type="button"
          onClick={() => {
            setOpener(target.current);
            setBy('menu');
          }}
        >
          Item
        </button>
      )}
      <input aria-label="Elsewhere" />
      {by !== null && <Asking opener={by === 'menu' ? opener : null} onClose={() => setBy(null)} />}
    </>
  );
}

test.each(['Open', 'Item'])('opened by %s, it gives the focus back to what is there', async (name) => {
  const { user } = show(<Page />);
  await user.click(screen.getByRole('button', { name }));
  expect(screen.getByRole('button', { name: 'Close' })).toHaveFocus();
  await user.keyboard('{Enter}');
  await waitFor(() => expect(screen.getByRole('button', { name: 'Open' })).toHaveFocus());
});

test('whoever went elsewhere meanwhile stays there', async () => {
  const { user } = show(<Page />);
  await user.click(screen.getByRole('button', { name: 'Open' }));
  const close = screen.getByRole('button', { name: 'Close' });
  const elsewhere = screen.getByRole('textbox', { name: 'Elsewhere' });
  close.addEventListener('click', () => elsewhere.focus());
  await user.keyboard('{Enter}');
  await waitFor(() => expect(screen.queryByRole('button', { name: 'Close' })).toBeNull());
  await new Promise((done) => setTimeout(done));
  expect(elsewhere).toHaveFocus();
});
