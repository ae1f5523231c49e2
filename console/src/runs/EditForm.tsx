import { useState } from 'react';
import { useRevealToEdit } from '@/api/letter-to-edit';
import type { Letter } from '@/api/types';
import { EditGate } from './EditGate';
import { RevisionEditor } from './RevisionEditor';

interface Props {
  letter: Letter;
  onDirty: (dirty: boolean) => void;
  onClose: () => void;
  onOperations: () => void;
  onSaved: (number: number, andRedrive: boolean) => void;
}

/** First the real text is revealed, then it is edited. There is no other way to the editor. */
export default function EditForm({ letter, onDirty, onClose, onOperations, onSaved }: Props) {
  const reveal = useRevealToEdit(letter.id);
  const [reason, setReason] = useState('');
  if (reveal.data === undefined) {
    return (
      <EditGate
        letter={letter}
        reason={reason}
        onReason={setReason}
        busy={reveal.isPending}
        error={reveal.error}
        onReveal={() => reveal.mutate(reason.trim())}
        onOperations={onOperations}
        onClose={onClose}
        onSaved={(number) => onSaved(number, false)}
      />
    );
  }
  return <RevisionEditor first={reveal.data} firstReason={reason} onDirty={onDirty} onClose={onClose} onSaved={onSaved} />;
}
