import { ActionIcon, Button, Menu } from '@mantine/core';
import { IconArrowMerge, IconBan, IconCheck, IconDots, IconPlayerTrackNext } from '@tabler/icons-react';
import { lazy, Suspense, useState } from 'react';
import type { FailureGroup } from '@/api/types';
import type { DecisionName } from '@/letters/changes';
import { LazyChangeDialog } from '@/letters/LazyChangeDialog';
import { useText } from '@/locales/language';
import { LazyRedriveDialog } from '@/runs/LazyDialogs';
import { useKeys } from '@/shared/keys';
import { Permitted, useRefusal } from '@/shared/session';
import { useWasOpened } from '@/shared/useWasOpened';

const MergeDialog = lazy(async () => ({ default: (await import('./MergeDialog')).MergeDialog }));

/** What can be done about all pending letters of the group, each with their number. */
export function GroupActions({ group }: { group: FailureGroup }) {
  const { actions: text } = useText().groups;
  const [redriving, setRedriving] = useState(false);
  const [change, setChange] = useState<DecisionName | null>(null);
  const [merging, setMerging] = useState(false);
  const mergeable = useWasOpened(merging);
  const refused = useRefusal('runs:make', group.queue);
  const open = group.pending;
  const query = `group:${group.id} status:PENDING`;
  const redrive = () => refused === null && open > 0 && setRedriving(true);
  useKeys([{ key: 'r', label: text.redrive(open), run: redrive }]);
  return (
    <>
      <Permitted to="runs:make" queue={group.queue}>
        {(disabled) => (
          <Button
            size="sm"
            variant="filled"
            leftSection={<IconPlayerTrackNext size={15} aria-hidden />}
            disabled={disabled || open === 0}
            title={open === 0 ? text.nothing : undefined}
            onClick={redrive}
          >
            {text.redrive(open)}
          </Button>
        )}
      </Permitted>
      <MoreMenu group={group} onDecide={setChange} onMerge={() => setMerging(true)} />
      <LazyRedriveDialog selection={{ query }} count={open} opened={redriving} onClose={() => setRedriving(false)} />
      <LazyChangeDialog name={change} chosen={{ query }} onClose={() => setChange(null)} />
      {mergeable && (
        <Suspense>
          <MergeDialog group={group} opened={merging} onClose={() => setMerging(false)} />
        </Suspense>
      )}
    </>
  );
}

interface MenuProps {
  group: FailureGroup;
  onDecide: (name: DecisionName) => void;
  onMerge: () => void;
}

function MoreMenu({ group, onDecide, onMerge }: MenuProps) {
  const { actions: text } = useText().groups;
  const mayDecide = useRefusal('letters:decide', group.queue);
  const mayChange = useRefusal('groups:change', group.queue);
  const stuck = mayDecide ?? (group.pending === 0 ? text.nothing : null);
  return (
    <Menu position="bottom-end">
      <Menu.Target>
        <ActionIcon size={34} variant="default" aria-label={text.more}>
          <IconDots size={17} aria-hidden />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Item leftSection={<IconCheck size={15} aria-hidden />} disabled={stuck !== null} title={stuck ?? undefined} onClick={() => onDecide('resolve')}>
          {text.resolve(group.pending)}
        </Menu.Item>
        <Menu.Item
          color="red"
          leftSection={<IconBan size={15} aria-hidden />}
          disabled={stuck !== null}
          title={stuck ?? undefined}
          onClick={() => onDecide('discard')}
        >
          {text.discard(group.pending)}
        </Menu.Item>
        <Menu.Divider />
        <Menu.Item leftSection={<IconArrowMerge size={15} aria-hidden />} disabled={mayChange !== null} title={mayChange ?? undefined} onClick={onMerge}>
          {text.merge}
        </Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}
