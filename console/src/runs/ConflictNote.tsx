import { Button } from '@mantine/core';
import { IconArrowsSplit2 } from '@tabler/icons-react';
import type { Letter } from '@/api/types';
import { useText } from '@/locales/language';
import { Instant } from '@/shared/Instant';
import { Untrusted } from '@/shared/Untrusted';
import classes from './dialogs.module.css';

interface Props {
  theirs: Letter;
  onMine: () => void;
  onTheirs: () => void;
}

/** Somebody else has saved meanwhile: whose version goes on. */
export function ConflictNote({ theirs, onMine, onTheirs }: Props) {
  const { runs } = useText();
  const text = runs.edit.conflict;
  const newest = theirs.revisions.at(-1);
  return (
    <div role="alert" className={classes.conflict}>
      <IconArrowsSplit2 size={18} stroke={1.8} aria-hidden />
      <div>
        <strong>{text.title(theirs.revision)}</strong>
        {newest !== undefined && (
          <p>
            {text.by} <Untrusted text={newest.by} most={120} />, <Instant at={newest.at} />: <Untrusted text={newest.reason} most={300} />
          </p>
        )}
        <p>{text.what}</p>
        <div className={classes.row}>
          <Button onClick={onTheirs}>{text.theirs}</Button>
          <Button variant="filled" onClick={onMine}>
            {text.mine}
          </Button>
        </div>
      </div>
    </div>
  );
}
