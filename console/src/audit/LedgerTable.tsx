import { ActionIcon } from '@mantine/core';
import { IconBan, IconChevronDown, IconChevronRight } from '@tabler/icons-react';
import { useState } from 'react';
import { Link } from 'react-router';
import type { LedgerEntry } from '@/api/types';
import { useFormat, useText } from '@/locales/language';
import { paths } from '@/routes/paths';
import { addressOf } from '@/shared/address';
import { Heads } from '@/shared/Heads';
import { Instant } from '@/shared/Instant';
import { known } from '@/shared/known';
import table from '@/shared/table.module.css';
import tones from '@/shared/tones.module.css';
import { visible } from '@/shared/untrusted';
import { Untrusted } from '@/shared/Untrusted';
import { lacking } from './deeds';
import { LedgerDetails } from './LedgerDetails';
import { SubjectLinks } from './SubjectLinks';
import classes from './LedgerTable.module.css';

const BRIEF = 160;
const SAYING = 240;

export function LedgerTable({ rows }: { rows: readonly LedgerEntry[] }) {
  const { columns } = useText().audit;
  const { more, ...told } = columns;
  return (
    <table className={`${table.table ?? ''} ${classes.table ?? ''}`}>
      <Heads columns={told} unseen={more} />
      <tbody>
        {rows.map((row) => (
          <Row key={row.seq} row={row} />
        ))}
      </tbody>
    </table>
  );
}

function Row({ row }: { row: LedgerEntry }) {
  const { audit: text } = useText();
  const format = useFormat();
  const [open, setOpen] = useState(false);
  const Shape = open ? IconChevronDown : IconChevronRight;
  const id = `row-${row.seq}`;
  return (
    <>
      <tr data-denied={!row.allowed || undefined} className={classes.row}>
        <td className={classes.when}>
          <Instant at={row.at} />
        </td>
        <td className={classes.who}>
          <Link to={addressOf(paths.audit, { who: row.who })} title={text.filter.by(visible(row.who))} className={classes.plain}>
            <Untrusted text={row.who} most={100} />
          </Link>
        </td>
        <td className={classes.what}>
          <What row={row} />
        </td>
        <td>
          <SubjectLinks subject={row.subject} />
        </td>
        <td className={classes.change} data-none={(row.before === '' && row.after === '') || undefined}>
          <Change row={row} />
        </td>
        <td className={classes.why} data-none={row.reason === '' || undefined}>
          {row.reason === '' ? <span title={text.noReason} className="rd-dim">–</span> : <Untrusted text={row.reason} most={SAYING} />}
        </td>
        <td className={classes.more}>
          <ActionIcon size="sm" aria-label={text.details.open(format.number(row.seq))} aria-expanded={open} aria-controls={open ? id : undefined} onClick={() => setOpen(!open)}>
            <Shape size={15} aria-hidden />
          </ActionIcon>
        </td>
      </tr>
      {open && (
        <tr id={id} className={classes.opened}>
          <td colSpan={7}>
            <LedgerDetails row={row} />
          </td>
        </tr>
      )}
    </>
  );
}

/** What was done; a denial by its word, its shape and the permission that was lacking. */
function What({ row: { allowed, what } }: { row: LedgerEntry }) {
  const { audit: text } = useText();
  const permission = lacking(what);
  const word = known(text.whats, what);
  return (
    <span className={classes.deed}>
      {!allowed && (
        <span className={`${tones.badge ?? ''} ${tones.bad ?? ''}`}>
          <IconBan size={13} stroke={2.2} aria-hidden />
          {text.denied}
        </span>
      )}
      {word === undefined ? <Untrusted text={permission ?? what} mono={permission !== null} most={100} /> : <span title={what}>{word}</span>}
    </span>
  );
}

/** Digests are whole in the details. */
const withoutDigests = (text: string) => text.replace(/\b([0-9a-f]{10})[0-9a-f]{22,}\b/g, '$1…');

function Change({ row: { before, after } }: { row: LedgerEntry }) {
  const { audit: text } = useText();
  if (before === '' && after === '') return <span className="rd-dim">–</span>;
  return (
    <>
      {before !== '' && (
        <span className="rd-dim">
          <Untrusted text={withoutDigests(before)} most={BRIEF} />
        </span>
      )}
      {after !== '' && (
        <>
          <span role="img" aria-label={text.becomes} className={classes.arrow}>
            →
          </span>
          <Untrusted text={withoutDigests(after)} most={BRIEF} />
        </>
      )}
    </>
  );
}
