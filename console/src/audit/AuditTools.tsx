import { Modal } from '@mantine/core';
import type { ReactNode } from 'react';
import { quoted } from '@/letters/commands';
import { useText } from '@/locales/language';
import { Command } from '@/shared/Command';
import { useNow } from '@/shared/now';
import { SPANS, type Wanted } from './wanted';
import classes from './AuditPage.module.css';

interface Props {
  opened: boolean;
  onClose: () => void;
  wanted: Wanted;
}

/** What this page shows, as a command; the rows of a range from its first second on. */
export function exportCommand({ who, what, denied, time, from }: Wanted, now: number): string {
  const told = ['redrive audit export'];
  if (who !== '') told.push(`--who=${quoted(who)}`);
  if (what !== '') told.push(`--what=${quoted(what)}`);
  if (time in SPANS) told.push(`--since ${time}`);
  if (time === 'range' && from !== '') told.push(`--since ${Math.max(1, Math.ceil((now - Date.parse(from)) / 60_000))}m`);
  if (denied) told.push('--denials');
  return `${told.join(' ')} > audit.jsonl`;
}

/** How to take the ledger elsewhere, and how to find out whether somebody has changed it. */
export function AuditTools({ opened, onClose, wanted }: Props) {
  const { audit, shared } = useText();
  const { tools: text } = audit;
  const now = useNow();
  return (
    <Modal opened={opened} onClose={onClose} title={text.open} size="lg" closeButtonProps={{ 'aria-label': shared.close }}>
      <div className={classes.tools}>
        <Tool title={text.export} command={exportCommand(wanted, now)}>
          {text.exportWhat}
          {wanted.time === 'range' && wanted.to !== '' && ` ${text.until}`}
        </Tool>
        <Tool title={text.verify} command="redrive audit verify">
          {text.verifyWhat}
        </Tool>
        <Tool title={text.checkpoint} command="redrive audit checkpoint">
          {text.checkpointWhat}
        </Tool>
      </div>
    </Modal>
  );
}

function Tool({ title, command, children }: { title: string; command: string; children: ReactNode }) {
  return (
    <section className={classes.tool}>
      <h3>{title}</h3>
      <p>{children}</p>
      <Command text={command} />
    </section>
  );
}
