import { Button } from '@mantine/core';
import { useState } from 'react';
import type { FailureGroup, Happening } from '@/api/types';
import { useText } from '@/locales/language';
import { Instant } from '@/shared/Instant';
import { known } from '@/shared/known';
import { Untrusted } from '@/shared/Untrusted';
import { Section } from '@/shared/Section';
import { isVerdict } from './state';
import classes from './History.module.css';

const SHOWN = 6;

/** What people said and did about the group, the last first. */
export function History({ history }: { history: FailureGroup['history'] }) {
  const { history: text } = useText().groups;
  const [most, setMost] = useState(SHOWN);
  const lines = [...history].reverse();
  return (
    <Section title={text.title}>
      {lines.length === 0 && <p className={classes.none}>{text.none}</p>}
      <ol className={classes.list}>
        {lines.slice(0, most).map((each, at) => (
          <Line key={`${each.at} ${at}`} happening={each} />
        ))}
      </ol>
      {lines.length > most && (
        <Button size="compact-xs" variant="subtle" onClick={() => setMost(most + 10 * SHOWN)}>
          {text.more(lines.length - most)}
        </Button>
      )}
    </Section>
  );
}

function Line({ happening }: { happening: Happening }) {
  const { history: text, verdicts } = useText().groups;
  const { what, by, at, before, after, reason } = happening;
  const written = (value: string) => (what === 'verdict' && isVerdict(value) ? verdicts[value] : value);
  return (
    <li className={classes.line}>
      <div className={classes.head}>
        <b>
          <Untrusted text={by} most={80} />
        </b>{' '}
        {known(after === '' ? text.tookAway : text.did, what) ?? <Untrusted text={what} most={80} />}
        <span className={classes.when}>
          <Instant at={at} />
        </span>
      </div>
      {(before !== '' || after !== '') && (
        <div className={classes.change}>
          {before !== '' && (
            <del>
              <Untrusted text={written(before)} most={200} />
            </del>
          )}
          {after !== '' && (
            <ins>
              <Untrusted text={written(after)} most={200} />
            </ins>
          )}
        </div>
      )}
      {reason !== '' && (
        <q className={classes.reason}>
          <Untrusted text={reason} most={400} />
        </q>
      )}
    </li>
  );
}
