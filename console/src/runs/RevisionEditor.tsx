import { Button, Tabs, TextInput } from '@mantine/core';
import { useState } from 'react';
import type { LetterToEdit } from '@/api/letter-to-edit';
import { useText } from '@/locales/language';
import { ProblemNote } from '@/shared/ProblemNote';
import { Permitted } from '@/shared/session';
import { useToasts } from '@/shared/toasts';
import { ConflictNote } from './ConflictNote';
import { HeadersEditor } from './HeadersEditor';
import { PayloadEditor } from './PayloadEditor';
import { SchemaCheck } from './SchemaCheck';
import { useRevision, type Revision } from './useRevision';
import classes from './dialogs.module.css';

interface Props {
  first: LetterToEdit;
  firstReason: string;
  onDirty: (dirty: boolean) => void;
  onClose: () => void;
  onSaved: (number: number, andRedrive: boolean) => void;
}

/** The real text of a letter, what changes of it, and why. */
export function RevisionEditor({ first, firstReason, onDirty, onClose, onSaved }: Props) {
  const { runs } = useText();
  const text = runs.edit;
  const revision = useRevision(first, onDirty);
  return (
    <>
      {revision.undecided && <ConflictNote theirs={revision.base.letter} onMine={revision.keepMine} onTheirs={revision.takeTheirs} />}
      <Tabs defaultValue="payload" keepMounted={false}>
        <Tabs.List>
          <Tabs.Tab value="payload">
            {text.tabs.payload} {revision.payloadChanged && <Changed />}
          </Tabs.Tab>
          <Tabs.Tab value="headers">
            {text.tabs.headers} {revision.headersChanged && <Changed />}
          </Tabs.Tab>
          <Tabs.Tab value="schema">{text.tabs.schema}</Tabs.Tab>
        </Tabs.List>
        <Tabs.Panel value="payload" className={classes.tab}>
          <PayloadEditor revision={revision} />
        </Tabs.Panel>
        <Tabs.Panel value="headers" className={classes.tab}>
          <HeadersEditor rows={revision.rows} onChange={revision.setRows} />
        </Tabs.Panel>
        <Tabs.Panel value="schema" className={classes.tab}>
          <SchemaCheck revision={revision} />
        </Tabs.Panel>
      </Tabs>
      <SaveBar revision={revision} firstReason={firstReason} onClose={onClose} onSaved={onSaved} />
    </>
  );
}

function Changed() {
  const { runs } = useText();
  return <span className={classes.dot} role="img" aria-label={runs.edit.changed} title={runs.edit.changed} />;
}

type SaveProps = Pick<Props, 'firstReason' | 'onClose' | 'onSaved'> & { revision: Revision };

function SaveBar({ revision, firstReason, onClose, onSaved }: SaveProps) {
  const { runs, shared } = useText();
  const text = runs.edit;
  const toasts = useToasts();
  const [reason, setReason] = useState(firstReason);
  const ready = revision.dirty && revision.written.given !== null && !revision.undecided && reason.trim() !== '';
  const why = revision.undecided ? text.conflict.choose : revision.dirty ? undefined : text.payload.unchanged;
  const save = async (andRedrive: boolean) => {
    const number = await revision.save(reason.trim());
    if (number === null) return;
    toasts.done(text.saved(number));
    onSaved(number, andRedrive);
  };
  const { queue } = revision.base.letter;
  return (
    <div className={classes.footer}>
      {revision.error !== null && <ProblemNote error={revision.error} />}
      <div className={classes.decide}>
        <TextInput
          className={classes.reason}
          label={text.reason}
          value={reason}
          maxLength={1000}
          required
          onChange={(event) => setReason(event.currentTarget.value)}
        />
        <div className={classes.buttons}>
          <Button size="sm" onClick={onClose}>
            {shared.cancel}
          </Button>
          <Permitted to="runs:make" queue={queue}>
            {(refused) => (
              <Button size="sm" disabled={refused || !ready} title={why} loading={revision.busy} onClick={() => void save(true)}>
                {text.saveAndRedrive}
              </Button>
            )}
          </Permitted>
          <Button size="sm" variant="filled" disabled={!ready} title={why} loading={revision.busy} onClick={() => void save(false)}>
            {text.save}
          </Button>
        </div>
      </div>
    </div>
  );
}
