import { Checkbox, TextInput } from '@mantine/core';
import { useDebouncedValue } from '@mantine/hooks';
import { useState } from 'react';
import { useMergeGroups } from '@/api/groups';
import { useGroupPages } from '@/api/insights';
import type { FailureGroup } from '@/api/types';
import { useText } from '@/locales/language';
import { ConfirmDialog } from '@/shared/ConfirmDialog';
import { DataState } from '@/shared/DataState';
import { useToasts } from '@/shared/toasts';
import { Untrusted } from '@/shared/Untrusted';
import { shortTitle } from './GroupTitle';
import classes from './MergeDialog.module.css';

interface Props {
  group: FailureGroup;
  opened: boolean;
  onClose: () => void;
}

const SHOWN = 20;

/** Groups of the same queue that are the same cause after all. */
export function MergeDialog({ group, opened, onClose }: Props) {
  const { groups, shared } = useText();
  const { merge: text } = groups;
  const toast = useToasts();
  const merge = useMergeGroups(group.id);
  const [chosen, setChosen] = useState<FailureGroup[]>([]);
  const letters = shared.letters(chosen.reduce((sum, each) => sum + each.total, 0));
  const go = async (reason: string) => {
    await merge.mutateAsync({ others: chosen.map((each) => each.id), reason });
    toast.done(text.done(chosen.length));
  };
  const toggle = (other: FailureGroup) =>
    setChosen((old) => (old.some(({ id }) => id === other.id) ? old.filter(({ id }) => id !== other.id) : [...old, other]));
  return (
    <ConfirmDialog
      opened={opened}
      onClose={() => {
        setChosen([]);
        onClose();
      }}
      title={text.title}
      confirm={text.chosen(chosen.length, letters)}
      reason="required"
      ready={chosen.length > 0}
      onConfirm={go}
    >
      <p className={classes.what}>{text.what}</p>
      <Others group={group} chosen={chosen} onToggle={toggle} />
    </ConfirmDialog>
  );
}

interface OthersProps {
  group: FailureGroup;
  chosen: readonly FailureGroup[];
  onToggle: (group: FailureGroup) => void;
}

function Others({ group, chosen, onToggle }: OthersProps) {
  const { groups, shared } = useText();
  const { merge: text } = groups;
  const [typed, setTyped] = useState('');
  const [asked] = useDebouncedValue(typed.trim(), 250);
  const query = useGroupPages({ queue: group.queue, text: asked || undefined, sort: 'pending' });
  const found = (query.data?.pages[0]?.items ?? []).filter(({ id }) => id !== group.id).slice(0, SHOWN);
  const shown = [...chosen, ...found.filter(({ id }) => !chosen.some((each) => each.id === id))];
  return (
    <>
      <TextInput aria-label={text.find} placeholder={text.find} value={typed} maxLength={200} onChange={(event) => setTyped(event.currentTarget.value)} />
      <DataState query={query} lines={3} isEmpty={() => shown.length === 0} empty={<p className={classes.none}>{text.none}</p>}>
        {() => (
          <ul className={classes.list}>
            {shown.map((each) => (
              <li key={each.id}>
                <Checkbox
                  size="xs"
                  checked={chosen.some(({ id }) => id === each.id)}
                  onChange={() => onToggle(each)}
                  label={<Untrusted text={shortTitle(each.title)} most={140} />}
                  description={shared.letters(each.total)}
                />
              </li>
            ))}
          </ul>
        )}
      </DataState>
    </>
  );
}
