import { Modal, Skeleton } from '@mantine/core';
import { useMediaQuery, useMounted } from '@mantine/hooks';
import { lazy, Suspense, useState } from 'react';
import type { Letter } from '@/api/types';
import { useText } from '@/locales/language';
import { ConfirmDialog } from '@/shared/ConfirmDialog';
import { RedriveDialog } from './RedriveDialog';
import classes from './dialogs.module.css';

const EditForm = lazy(() => import('./EditForm'));

interface Props {
  /** As it was shown, masked or not: its text is never what is edited. */
  letter: Letter;
  opened: boolean;
  onClose: () => void;
  /** Told the number of the new revision. */
  onSaved?: (number: number) => void;
}

/** A letter's payload and headers, edited as a new revision. */
export function EditDialog({ letter, opened, onClose, onSaved }: Props) {
  const { runs, shared } = useText();
  const text = runs.edit;
  const narrow = useMediaQuery('(max-width: 767px)');
  // One that is mounted open would not know where the focus was, and could not give it back.
  const mounted = useMounted();
  const [dirty, setDirty] = useState(false);
  const [leaving, setLeaving] = useState(false);
  const [then, setThen] = useState<'redrive' | 'operations' | null>(null);
  const close = () => {
    setDirty(false);
    setThen(null);
    onClose();
  };
  return (
    <>
      <Modal
        opened={opened && mounted && then === null}
        onClose={() => (dirty ? setLeaving(true) : close())}
        title={text.title}
        size={1040}
        fullScreen={narrow}
        closeOnClickOutside={false}
        closeButtonProps={{ 'aria-label': shared.close }}
        classNames={{ body: classes.body, title: classes.title }}
      >
        {opened && then === null && (
          <Suspense fallback={<Skeleton height={320} />}>
            <EditForm
              letter={letter}
              onDirty={setDirty}
              onClose={() => (dirty ? setLeaving(true) : close())}
              onOperations={() => setThen('operations')}
              onSaved={(number, andRedrive) => {
                onSaved?.(number);
                setDirty(false);
                if (andRedrive) setThen('redrive');
                else close();
              }}
            />
          </Suspense>
        )}
      </Modal>
      <ConfirmDialog
        opened={leaving}
        onClose={() => setLeaving(false)}
        title={text.discard}
        confirm={text.discardYes}
        danger
        onConfirm={() => {
          close();
          return Promise.resolve();
        }}
      />
      <RedriveDialog selection={{ ids: [letter.id] }} count={1} opened={opened && then !== null} withEdit={then === 'operations'} onClose={close} />
    </>
  );
}
