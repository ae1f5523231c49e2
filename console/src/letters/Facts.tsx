import { useMemo, type ReactNode } from 'react';
import { Link } from 'react-router';
import type { Letter } from '@/api/types';
import { useText } from '@/locales/language';
import { paths } from '@/routes/paths';
import { CopyButton } from '@/shared/CopyButton';
import { Count } from '@/shared/Count';
import { written } from '@/shared/filter-completion';
import { bytesOf } from '@/shared/base64';
import { Instant } from '@/shared/Instant';
import { known } from '@/shared/known';
import { Untrusted } from '@/shared/Untrusted';
import { envelopeOf } from './envelope';
import classes from './Facts.module.css';

/** What is known about a letter beside its failure: ids to copy, where it came from, who ran it. */
export function Facts({ letter }: { letter: Letter }) {
  const { letters: text } = useText();
  return (
    <aside className={`rd-panel ${classes.facts ?? ''}`} aria-label={text.facts.title}>
      <Ids letter={letter} />
      <Life letter={letter} />
      <Origin letter={letter} />
    </aside>
  );
}

export function useCorrelation({ message }: Letter): string | null {
  return useMemo(() => {
    const header = (message.headers as [string, unknown][]).find(
      ([name, value]) => /^(x-)?correlation[-_]?id$/i.test(name) && typeof value === 'string',
    );
    const told = message.body === null || message.body_encoding === 'base64' ? null : envelopeOf(message.body);
    return told?.correlation ?? (header?.[1] as string | undefined) ?? null;
  }, [message]);
}

function Ids({ letter }: { letter: Letter }) {
  const { letters: text } = useText();
  const correlation = useCorrelation(letter);
  return (
    <List title={text.facts.ids}>
      <Id name={text.facts.message} value={letter.message_id} copy={text.facts.copyMessage} />
      {correlation !== null && (
        <Id
          name={text.facts.correlation}
          value={correlation}
          copy={text.facts.copyCorrelation}
          to={paths.lettersBy(`correlation:${written(correlation)}`)}
        />
      )}
      <Id name={text.facts.group} value={letter.group_id} copy={text.facts.copyGroup} to={paths.group(letter.group_id)} />
      <Id name={text.facts.identity} value={letter.identity} copy={text.facts.copyIdentity} />
    </List>
  );
}

function Life({ letter }: { letter: Letter }) {
  const { letters: text } = useText();
  return (
    <List title={text.facts.title}>
      <Fact name={text.facts.queue}>
        <Link to={paths.lettersBy(`queue:${written(letter.queue)}`)}>
          <Untrusted mono text={letter.queue} most={120} />
        </Link>
      </Fact>
      {letter.handler !== '' && (
        <Fact name={text.facts.handler}>
          <Untrusted mono text={letter.handler} most={120} />
        </Fact>
      )}
      <Fact name={text.facts.kind}>{<Untrusted text={known<string>(text.kinds, letter.kind) ?? letter.kind} most={60} />}</Fact>
      <Fact name={text.facts.attempts}>
        <Count of={letter.attempts} />
      </Fact>
      <Fact name={text.facts.deliveries}>
        <Count of={letter.deliveries} />
      </Fact>
      <Fact name={text.facts.generation}>
        <Count of={letter.generation} />
      </Fact>
      <Fact name={text.facts.recorded}>
        <Instant at={letter.created_at} />
      </Fact>
    </List>
  );
}

function Origin({ letter }: { letter: Letter }) {
  const { letters: text } = useText();
  const { message } = letter;
  const host = letter.failures.at(-1)?.host;
  const app = [host?.app, host?.app_version].filter(Boolean).join(' ');
  const process = host !== undefined && host.process > 0 ? `, ${text.facts.process(String(host.process))}` : '';
  const properties = message.properties === null ? null : (bytesOf(message.properties)?.length ?? null);
  return (
    <List title={text.facts.where}>
      <Fact name={text.facts.sent}>
        <Instant at={message.sent_at} absolute />
      </Fact>
      <TextFact name={text.facts.source} value={message.source} />
      <TextFact name={text.facts.sentTo} value={message.queue === letter.queue ? null : message.queue} />
      <TextFact name={text.facts.key} value={message.key} />
      <TextFact name={text.facts.lane} value={letter.lane} />
      <TextFact name={text.facts.app} value={app} />
      <TextFact name={text.facts.environment} value={host?.environment} />
      <TextFact name={text.facts.host} value={host?.name === undefined || host.name === '' ? null : host.name + process} />
      {properties !== null && <Fact name={text.facts.broker}>{text.facts.bytes(properties)}</Fact>}
    </List>
  );
}

function List({ title, children }: { title: string; children: ReactNode }) {
  return (
    <section>
      <h2 className={classes.title}>{title}</h2>
      <dl className={classes.list}>{children}</dl>
    </section>
  );
}

function Fact({ name, children }: { name: string; children: ReactNode }) {
  return (
    <div className={classes.fact}>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

function TextFact({ name, value }: { name: string; value: string | null | undefined }) {
  if (value === null || value === undefined || value === '') return null;
  return (
    <Fact name={name}>
      <Untrusted mono text={value} most={200} />
    </Fact>
  );
}

function Id({ name, value, copy, to }: { name: string; value: string; copy: string; to?: string }) {
  if (value === '') return null;
  const shown = <Untrusted mono text={value} most={100} />;
  return (
    <Fact name={name}>
      <span className={classes.id}>
        <span className={classes.idText}>{to === undefined ? shown : <Link to={to}>{shown}</Link>}</span>
        <CopyButton value={value} title={copy} />
      </span>
    </Fact>
  );
}
