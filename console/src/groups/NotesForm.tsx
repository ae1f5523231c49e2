import { Button, NativeSelect, Textarea, TextInput } from '@mantine/core';
import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { groupKeys, readGroup, useAnnotateGroup } from '@/api/groups';
import type { FailureGroup } from '@/api/types';
import { useText } from '@/locales/language';
import { ProblemNote } from '@/shared/ProblemNote';
import { useToasts } from '@/shared/toasts';
import { Untrusted } from '@/shared/Untrusted';
import { changesOf, conflictsOf, draftOf, isRunbookFine, LONGEST, rebasedOn, type Draft } from './notes';
import { isVerdict, VERDICTS } from './state';
import classes from './Notes.module.css';

interface Props {
  group: FailureGroup;
  onDone: () => void;
}

/**
 * The API keeps no tag of groups, so what is there is read once more before it is written: where somebody else has
 * changed the same field meanwhile, whoever saves decides.
 */
function useSaving({ group, onDone }: Props) {
  const { notes: text } = useText().groups;
  const [base, setBase] = useState(() => draftOf(group));
  const [draft, setDraft] = useState(base);
  const [theirs, setTheirs] = useState<Draft | null>(null);
  const [problem, setProblem] = useState<unknown>(null);
  const [busy, setBusy] = useState(false);
  const annotate = useAnnotateGroup(group.id);
  const client = useQueryClient();
  const toast = useToasts();
  const write = async (before: Draft, after: Draft) => {
    const now = await readGroup(group.id);
    client.setQueryData(groupKeys.one(group.id), now);
    const found = draftOf(now);
    if (conflictsOf(before, after, found).length > 0) {
      setTheirs(found);
      return;
    }
    const changes = changesOf(before, after);
    if (Object.keys(changes).length > 0) {
      await annotate.mutateAsync(changes);
      toast.done(text.saved);
    }
    onDone();
  };
  const save = (before: Draft, after: Draft) => {
    setBusy(true);
    setProblem(null);
    write(before, after)
      .catch(setProblem)
      .finally(() => setBusy(false));
  };
  const decide = (mine: boolean) => {
    if (theirs === null) return;
    setTheirs(null);
    setBase(theirs);
    const rebased = rebasedOn(theirs, base, draft, mine);
    setDraft(rebased);
    if (mine) save(theirs, rebased);
  };
  return { base, draft, setDraft, theirs, problem, busy, save: () => save(base, draft), decide };
}

export function NotesForm(props: Props) {
  const { groups, shared } = useText();
  const { notes: text } = groups;
  const { base, draft, setDraft, theirs, problem, busy, save, decide } = useSaving(props);
  const set = (name: keyof Draft) => (event: { currentTarget: { value: string } }) => {
    const { value } = event.currentTarget;
    setDraft((old) => ({ ...old, [name]: value }));
  };
  const fine = isRunbookFine(draft.runbook);
  return (
    <form
      className={classes.form}
      onSubmit={(event) => {
        event.preventDefault();
        if (fine && !busy) save();
      }}
    >
      <TextInput label={text.owner} value={draft.owner} maxLength={LONGEST.owner} onChange={set('owner')} data-autofocus />
      <NativeSelect
        label={text.verdict}
        value={draft.verdict}
        onChange={set('verdict')}
        data={[{ value: '', label: text.noVerdict }, ...VERDICTS.map((value) => ({ value, label: groups.verdicts[value] }))]}
      />
      <TextInput
        label={text.runbook}
        type="url"
        value={draft.runbook}
        maxLength={LONGEST.runbook}
        error={fine ? undefined : text.badLink}
        placeholder="https://"
        onChange={set('runbook')}
      />
      <Textarea label={text.note} value={draft.note} rows={4} maxLength={LONGEST.note} onChange={set('note')} />
      {theirs !== null && <Conflict base={base} mine={draft} theirs={theirs} onDecide={decide} />}
      {problem !== null && <ProblemNote error={problem} />}
      <div className={classes.buttons}>
        <Button onClick={props.onDone}>{shared.cancel}</Button>
        <Button type="submit" variant="filled" disabled={!fine || theirs !== null} loading={busy}>
          {text.save}
        </Button>
      </div>
    </form>
  );
}

interface ConflictProps {
  base: Draft;
  mine: Draft;
  theirs: Draft;
  onDecide: (mine: boolean) => void;
}

function Conflict({ base, mine, theirs, onDecide }: ConflictProps) {
  const { groups } = useText();
  const { notes: text } = groups;
  const written = (name: keyof Draft) => (isVerdict(theirs[name]) ? groups.verdicts[theirs[name]] : theirs[name] || '–');
  return (
    <div role="alert" className={classes.conflict}>
      <p>{text.changedMeanwhile}</p>
      <dl className={classes.said}>
        {conflictsOf(base, mine, theirs).map((name) => (
          <div key={name} className={classes.line}>
            <dt>{text[name]}</dt>
            <dd>
              <Untrusted block text={written(name)} most={2000} />
            </dd>
          </div>
        ))}
      </dl>
      <div className={classes.buttons}>
        <Button onClick={() => onDecide(false)}>{text.useTheirs}</Button>
        <Button onClick={() => onDecide(true)}>{text.keepMine}</Button>
      </div>
    </div>
  );
}
