import { Link } from 'react-router';
import type { Letter } from '@/api/types';
import { useText } from '@/locales/language';
import { paths } from '@/routes/paths';
import { Untrusted } from '@/shared/Untrusted';
import classes from './LetterPage.module.css';

/** What stands in the way of sending it back, before anybody tries. */
export function LetterNotes({ letter }: { letter: Letter }) {
  const { letters: text } = useText();
  return (
    <>
      {letter.unreadable !== null && (
        <p className={classes.note}>
          <strong>{text.letter.unreadableTitle}.</strong> {text.letter.unreadable[letter.unreadable]}
        </p>
      )}
      {letter.status === 'QUARANTINED' && letter.how !== null && (
        <p className={classes.note}>
          <strong>{text.letter.quarantinedFor}</strong> <Untrusted text={letter.how} most={500} />
        </p>
      )}
      {letter.blocked_by !== null && (
        <p className={classes.note}>
          {text.letter.blocked}{' '}
          <Link to={paths.letter(letter.blocked_by)}>
            <Untrusted mono text={letter.blocked_by} />
          </Link>
        </p>
      )}
    </>
  );
}
