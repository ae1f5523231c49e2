import { Modal, Skeleton } from '@mantine/core';
import { useMediaQuery, useMounted } from '@mantine/hooks';
import { lazy, Suspense } from 'react';
import type { Chosen } from '@/api/letter-lists';
import { useText } from '@/locales/language';
import classes from './dialogs.module.css';

const RedriveForm = lazy(() => import('./RedriveForm'));

interface Props {
  /** These letters, or all that match a filter. */
  selection: Chosen;
  /** How many were selected, as far as it is known. The dialog counts by itself what can be sent of them. */
  count: number | undefined;
  opened: boolean;
  onClose: () => void;
  /** Told when the run is made, before the page of the run is shown. */
  onMade?: (runId: string) => void;
  /** Begins with the editor of operations open. */
  withEdit?: boolean;
}

/** How letters are sent back, everywhere the same: preview and checks, how, why, and the exact number. */
export function RedriveDialog({ selection, count, opened, onClose, onMade, withEdit = false }: Props) {
  const { runs, shared } = useText();
  const narrow = useMediaQuery('(max-width: 767px)');
  // One that is mounted open would not know where the focus was, and could not give it back.
  const mounted = useMounted();
  return (
    <Modal
      opened={opened && mounted}
      onClose={onClose}
      title={runs.redrive.title}
      size={1040}
      fullScreen={narrow}
      closeOnClickOutside={false}
      closeButtonProps={{ 'aria-label': shared.close }}
      classNames={{ body: classes.body, title: classes.title }}
    >
      {opened && (
        <Suspense fallback={<Skeleton height={320} />}>
          <RedriveForm chosen={selection} selected={count} withEdit={withEdit} onClose={onClose} onMade={onMade} />
        </Suspense>
      )}
    </Modal>
  );
}
