import { IconLockQuestion } from '@tabler/icons-react';
import type { Letter } from '@/api/types';
import { useText } from '@/locales/language';
import classes from './Payload.module.css';

/** Why there is nothing to see, and what to do about it. */
export function Unreadable({ why }: { why: NonNullable<Letter['unreadable']> }) {
  const { letters: text } = useText();
  return (
    <div className={classes.unreadable} role="note">
      <IconLockQuestion size={18} aria-hidden />
      <div>
        <p>
          <strong>{text.letter.unreadableTitle}</strong>
        </p>
        <p>{text.letter.unreadable[why]}</p>
      </div>
    </div>
  );
}
