import { ActionIcon, Button, NativeSelect, TextInput } from '@mantine/core';
import { IconPlus, IconX } from '@tabler/icons-react';
import { useServerSettings } from '@/api/settings';
import type { Role } from '@/api/types';
import { useText } from '@/locales/language';
import { useCan, useSession } from '@/shared/session';
import { grantable, type Draft } from './grants';
import classes from './Settings.module.css';

interface Props {
  drafts: readonly Draft[];
  onChange: (drafts: Draft[]) => void;
}

const ROLES: readonly Role[] = ['viewer', 'operator', 'payload', 'editor', 'approver', 'admin', 'auditor', 'ingest'];

/** Roles, each with the queues that it is for. */
export function GrantEditor({ drafts, onChange }: Props) {
  const { grants: text } = useText().settings;
  const me = useSession();
  const { data } = useServerSettings(useCan()('letters:read'));
  const change = (at: number, changed: Partial<Draft>) => onChange(drafts.map((each, place) => (place === at ? { ...each, ...changed } : each)));
  const options = ROLES.map((role) => {
    const beyond = !grantable(me, data?.roles[role] ?? []);
    return { value: role, label: beyond ? text.beyond(role) : role, disabled: beyond };
  });
  return (
    <fieldset className={classes.editor}>
      <legend>{text.title}</legend>
      <p>
        {text.queuesHelp} {text.onlyOwn}
      </p>
      {drafts.map(({ role, queues }, at) => (
        <div key={at} className={classes.line}>
          <NativeSelect aria-label={text.role} value={role} data={options} onChange={(event) => change(at, { role: event.currentTarget.value as Role })} />
          <TextInput
            aria-label={text.queuesOf(role)}
            placeholder={text.queues}
            value={queues}
            autoComplete="off"
            spellCheck={false}
            onChange={(event) => change(at, { queues: event.currentTarget.value })}
          />
          <ActionIcon aria-label={text.remove(role)} disabled={drafts.length === 1} onClick={() => onChange(drafts.filter((_, place) => place !== at))}>
            <IconX size={15} aria-hidden />
          </ActionIcon>
        </div>
      ))}
      <Button leftSection={<IconPlus size={14} aria-hidden />} onClick={() => onChange([...drafts, { role: 'viewer', queues: '' }])}>
        {text.add}
      </Button>
    </fieldset>
  );
}
