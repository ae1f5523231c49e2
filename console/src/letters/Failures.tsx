import { ActionIcon, NativeSelect } from '@mantine/core';
import { IconChevronLeft, IconChevronRight } from '@tabler/icons-react';
import type { FailureJson } from '@/api/types';
import { useFormat, useText } from '@/locales/language';
import { EmptyState } from '@/shared/EmptyState';
import { Instant } from '@/shared/Instant';
import { known } from '@/shared/known';
import { StackTrace } from '@/shared/StackTrace';
import { Untrusted } from '@/shared/Untrusted';
import classes from './Failures.module.css';

interface Props {
  failures: readonly FailureJson[];
  /** Which attempt is shown, counted from 0; beyond the end: the last one. */
  at: number;
  onShow: (at: number) => void;
}

/** Every attempt with its stack trace, one at a time, the last one first. */
export function Failures({ failures, at, onShow }: Props) {
  const { letters: text } = useText();
  const shown = Math.min(at, failures.length - 1);
  const failure = failures[shown];
  if (failure === undefined) return <EmptyState title={text.failure.none.title} what={text.failure.none.what} />;
  return (
    <>
      {failures.length > 1 && <Picker failures={failures} at={shown} onShow={onShow} />}
      <p className={classes.facts}>
        <Instant at={failure.at} absolute />
        <Kind of={failure.kind} />
        <Where failure={failure} />
      </p>
      <StackTrace key={shown} chain={failure.chain} printed={failure.trace} />
    </>
  );
}

function Picker({ failures, at, onShow }: Props) {
  const { letters: text } = useText();
  const format = useFormat();
  const nameOf = (each: FailureJson) => {
    const life = each.generation > 1 ? `, ${text.failure.life(format.number(each.generation))}` : '';
    return `${text.failure.attempt(format.number(each.attempt))}${life}`;
  };
  return (
    <div className={classes.picker}>
      <ActionIcon aria-label={text.failure.older} disabled={at === 0} onClick={() => onShow(at - 1)}>
        <IconChevronLeft size={16} aria-hidden />
      </ActionIcon>
      <NativeSelect
        size="xs"
        aria-label={text.failure.choose}
        value={String(at)}
        data={failures.map((each, place) => ({ value: String(place), label: nameOf(each) }))}
        onChange={(event) => onShow(Number(event.currentTarget.value))}
      />
      <ActionIcon aria-label={text.failure.newer} disabled={at === failures.length - 1} onClick={() => onShow(at + 1)}>
        <IconChevronRight size={16} aria-hidden />
      </ActionIcon>
      <span className="rd-dim">{text.failure.of(format.number(failures.length))}</span>
    </div>
  );
}

function Kind({ of }: { of: string }) {
  const { letters } = useText();
  return <Untrusted text={known<string>(letters.kinds, of) ?? of} most={60} />;
}

/** Where it ran, as far as that was told. */
export function Where({ failure }: { failure: FailureJson }) {
  const { letters: text } = useText();
  const { name, app, app_version: version, environment } = failure.host;
  const told = [[app, version].filter(Boolean).join(' '), environment, name === '' ? '' : text.story.on(name)].filter(Boolean);
  return told.length === 0 ? null : (
    <span className="rd-dim">
      <Untrusted text={told.join(', ')} most={200} />
    </span>
  );
}
