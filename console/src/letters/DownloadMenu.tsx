import { Button, Menu } from '@mantine/core';
import { IconDownload } from '@tabler/icons-react';
import { useState } from 'react';
import { selectionOf, type Chosen } from '@/api/letter-lists';
import { exportLetters, exportUnmasked } from '@/api/letters';
import { useText } from '@/locales/language';
import { ConfirmDialog } from '@/shared/ConfirmDialog';
import { useRefusal, useSession } from '@/shared/session';
import { useToasts } from '@/shared/toasts';
import { save } from './downloads';
import classes from './LetterPage.module.css';

const named = () => `letters-${new Date().toISOString().slice(0, 19).replaceAll(':', '')}.jsonl`;

/** The selection as a file. */
export function DownloadMenu({ chosen }: { chosen: Chosen }) {
  const { letters: text } = useText();
  const me = useSession();
  const toast = useToasts();
  const refusal = useRefusal('letters:export');
  const [busy, setBusy] = useState(false);
  const [asking, setAsking] = useState(false);
  const selection = selectionOf(chosen);
  const masked = (whole: boolean) => {
    setBusy(true);
    exportLetters({ selection, whole })
      .then((file) => {
        save(named(), file);
        toast.done(text.download.done);
      }, toast.problem)
      .finally(() => setBusy(false));
  };
  return (
    <>
      <Menu position="top-end">
        <Menu.Target>
          <Button loading={busy} leftSection={<IconDownload size={14} aria-hidden />}>
            {text.download.menu}
          </Button>
        </Menu.Target>
        <Menu.Dropdown>
          <Menu.Item onClick={() => masked(false)}>{text.download.lines}</Menu.Item>
          <Menu.Item onClick={() => masked(true)}>{text.download.whole}</Menu.Item>
          <Menu.Item
            data-disabled={refusal !== null}
            className={classes.item ?? ''}
            closeMenuOnClick={refusal === null}
            onClick={() => refusal === null && setAsking(true)}
          >
            {text.download.unmasked}
            {refusal !== null && <div className={classes.why}>{refusal}</div>}
          </Menu.Item>
        </Menu.Dropdown>
      </Menu>
      <ConfirmDialog
        opened={asking}
        onClose={() => setAsking(false)}
        title={text.download.unmaskedTitle}
        confirm={text.download.unmaskedConfirm}
        reason="required"
        onConfirm={async (reason) => save(named(), await exportUnmasked({ selection, whole: true, reason }))}
      >
        {text.download.unmaskedWhat(me.name)}
      </ConfirmDialog>
    </>
  );
}
