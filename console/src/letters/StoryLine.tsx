import type { ReactNode } from 'react';
import { Link } from 'react-router';
import type { Happening } from '@/api/types';
import { useFormat, useText } from '@/locales/language';
import { paths } from '@/routes/paths';
import { Duration } from '@/shared/Duration';
import { known } from '@/shared/known';
import { shortType } from '@/shared/short-type';
import { Untrusted } from '@/shared/Untrusted';
import { Where } from './Failures';
import type { StoryEvent } from './story';
import classes from './Story.module.css';

type Of<K extends StoryEvent['kind']> = Extract<StoryEvent, { kind: K }>;

/** One event in words. */
export function StoryLine({ event, onTrace }: { event: StoryEvent; onTrace: (attempt: number) => void }) {
  switch (event.kind) {
    case 'sent':
      return <Sent event={event} />;
    case 'attempt':
      return <Attempt event={event} onTrace={onTrace} />;
    case 'edited':
      return <Edited event={event} />;
    case 'redriven':
      return <Redriven event={event} />;
    case 'happened':
      return <Happened happening={event.happening} />;
  }
}

function Sent({ event }: { event: Of<'sent'> }) {
  const { letters: text } = useText();
  const by = event.source === null || event.source === '' ? null : text.story.sentBy(event.source);
  return <Line title={text.story.sent} by={by} more={<Untrusted mono text={text.story.to(event.queue)} most={100} />} />;
}

function Attempt({ event, onTrace }: { event: Of<'attempt'>; onTrace: (attempt: number) => void }) {
  const { letters: text } = useText();
  const format = useFormat();
  const { failure } = event;
  const raised = failure.chain.at(-1);
  const life = failure.generation > 1 ? ` (${text.failure.life(format.number(failure.generation))})` : '';
  return (
    <>
      <Line title={`${text.story.attempt(format.number(failure.attempt))}${life}`} by={null} more={<Where failure={failure} />} />
      <div className={classes.detail}>
        <Untrusted mono text={shortType(raised?.type ?? '')} most={120} />
        {raised !== undefined && raised.text !== '' && (
          <>
            {': '}
            <Untrusted text={raised.text} most={200} />
          </>
        )}{' '}
        <button type="button" className={classes.trace} onClick={() => onTrace(event.number)}>
          {text.story.trace}
        </button>
      </div>
    </>
  );
}

function Edited({ event }: { event: Of<'edited'> }) {
  const { letters: text } = useText();
  const { number, by, reason } = event.revision;
  return <Line title={text.story.revisionMade(number)} by={text.story.by(by)} reason={reason} />;
}

function Redriven({ event }: { event: Of<'redriven'> }) {
  const { letters: text } = useText();
  const { redrive } = event;
  const took = (Date.parse(event.sentAt) - Date.parse(event.at)) / 1000;
  const outcome = redrive === null ? '' : (known(text.story.outcomes, redrive.outcome) ?? redrive.outcome);
  return (
    <Line
      title={text.story.redrive}
      by={text.story.by(event.by)}
      reason={event.reason}
      more={
        <>
          {redrive?.target != null && <Untrusted mono text={text.story.to(redrive.target)} most={100} />}
          {event.run !== null && <Link to={paths.run(event.run)}>{text.story.run}</Link>}
          {outcome !== '' && <Untrusted text={outcome} most={60} />}
          {took >= 1 && (
            <span className="rd-dim">
              <Duration seconds={took} />
            </span>
          )}
        </>
      }
    />
  );
}

function Happened({ happening }: { happening: Happening }) {
  const { letters: text } = useText();
  const { what, by, reason } = happening;
  return <Line title={known(text.story.whats, what) ?? what} by={text.story.by(by)} reason={reason} />;
}

interface LineProps {
  title: string;
  by: string | null;
  more?: ReactNode;
  reason?: string;
}

function Line({ title, by, more, reason = '' }: LineProps) {
  return (
    <>
      <div className={classes.line}>
        <strong>
          <Untrusted text={title} most={200} />
        </strong>
        {by !== null && (
          <span className="rd-dim">
            <Untrusted text={by} most={200} />
          </span>
        )}
        {more}
      </div>
      {reason !== '' && (
        <div className={classes.reason}>
          <Untrusted text={reason} most={600} />
        </div>
      )}
    </>
  );
}
