import { Button } from '@mantine/core';
import { useState } from 'react';
import { Link } from 'react-router';
import { useSplitGroup } from '@/api/groups';
import type { FailureGroup } from '@/api/types';
import { useText } from '@/locales/language';
import { paths } from '@/routes/paths';
import { ConfirmDialog } from '@/shared/ConfirmDialog';
import { Permitted } from '@/shared/session';
import { useToasts } from '@/shared/toasts';
import { Untrusted } from '@/shared/Untrusted';
import { Section } from '@/shared/Section';
import classes from './Merged.module.css';

/** Groups that somebody made part of this one, and the way back. */
export function Merged({ group }: { group: FailureGroup }) {
  const { groups } = useText();
  const { merged: text } = groups;
  const toast = useToasts();
  const split = useSplitGroup(group.id);
  const [asked, setAsked] = useState<string | null>(null);
  if (group.merged.length === 0) return null;
  const splitOff = async (fingerprint: string, reason: string) => {
    const own = await split.mutateAsync({ fingerprint, reason });
    toast.done(text.done, <Link to={paths.group(own.id)}>{groups.title}</Link>);
  };
  return (
    <Section title={text.title}>
      <ul className={classes.list}>
        {group.merged.map((fingerprint) => (
          <li key={fingerprint} className={classes.line}>
            <Untrusted mono text={fingerprint} most={40} />
            <Permitted to="groups:change" queue={group.queue}>
              {(disabled) => (
                <Button size="compact-xs" disabled={disabled} onClick={() => setAsked(fingerprint)}>
                  {text.split}
                </Button>
              )}
            </Permitted>
          </li>
        ))}
      </ul>
      <ConfirmDialog
        opened={asked !== null}
        onClose={() => setAsked(null)}
        title={text.splitTitle}
        confirm={text.split}
        reason="required"
        onConfirm={(reason) => splitOff(asked ?? '', reason)}
      >
        <p>{text.splitWhat}</p>
        <Untrusted mono text={asked ?? ''} most={64} />
      </ConfirmDialog>
    </Section>
  );
}
