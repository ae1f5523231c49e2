import type { ReactNode } from 'react';
import type { LedgerEntry } from '@/api/types';
import { useFormat, useText } from '@/locales/language';
import { CopyButton } from '@/shared/CopyButton';
import { exactly } from '@/shared/Instant';
import { Untrusted } from '@/shared/Untrusted';
import { SubjectLinks } from './SubjectLinks';
import classes from './LedgerTable.module.css';

/** Everything that a row of the ledger says. */
export function LedgerDetails({ row }: { row: LedgerEntry }) {
  const { details: text } = useText().audit;
  const format = useFormat();
  const { subject } = row;
  return (
    <dl className={classes.details}>
      <Fact label={text.row}>{format.number(row.seq)}</Fact>
      <Fact label={text.at}>
        <span className="rd-mono">{exactly(new Date(row.at))}</span>
      </Fact>
      <Text label={text.request} text={row.request_id} copied />
      <Text label={text.token} text={row.token} />
      <Text label={text.reason} text={row.reason} prose />
      <Text label={text.before} text={row.before} prose />
      <Text label={text.after} text={row.after} prose />
      {subject.ids.length > 0 && (
        <Fact label={text.subjects}>
          <SubjectLinks subject={subject} whole />
          {subject.digest !== '' && <span className="rd-dim">{text.unnamed(format.number(subject.ids.length), format.number(subject.count))}</span>}
        </Fact>
      )}
      <Text label={text.digest} text={subject.digest} />
      <Text label={text.key} text={row.key_id} />
      <Text label={text.mac} text={row.mac} />
      <Text label={text.previous} text={row.previous} />
    </dl>
  );
}

function Fact({ label, children }: { label: string; children: ReactNode }) {
  return (
    <>
      <dt>{label}</dt>
      <dd>{children}</dd>
    </>
  );
}

function Text({ label, text, prose = false, copied = false }: { label: string; text: string; prose?: boolean; copied?: boolean }) {
  if (text === '') return null;
  return (
    <Fact label={label}>
      <Untrusted text={text} mono={!prose} block={prose} most={4000} />
      {copied && <CopyButton value={text} />}
    </Fact>
  );
}
