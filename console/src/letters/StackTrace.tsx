import { Button } from '@mantine/core';
import { IconChevronDown, IconChevronRight } from '@tabler/icons-react';
import { useState } from 'react';
import type { FailureJson } from '@/api/types';
import { useText } from '@/locales/language';
import { CopyButton } from '@/shared/CopyButton';
import { TextWindow } from '@/shared/TextWindow';
import { Untrusted } from '@/shared/Untrusted';
import { known } from '@/shared/known';
import classes from './StackTrace.module.css';

/** So long that it may need scrolling, which the keyboard must reach. */
const SCROLLS = 600;

type Raised = FailureJson['chain'][number];
type Frame = Raised['frames'][number];

/** Everything that was raised in an attempt: what the handler raised first, then what led to it. */
export function StackTrace({ failure }: { failure: FailureJson }) {
  const { letters: text } = useText();
  const [raw, setRaw] = useState(false);
  const chain = failure.chain.toReversed();
  return (
    <div>
      <div className={classes.tools}>
        <span className="rd-dim">{failure.chain.some((each) => each.frames.length > 1) && text.failure.order}</span>
        <span className={classes.buttons}>
          <Button size="compact-xs" aria-pressed={raw} onClick={() => setRaw(!raw)}>
            {raw ? text.failure.frames : text.failure.raw}
          </Button>
          <CopyButton value={failure.trace} title={text.failure.copy} />
        </span>
      </div>
      {raw ? (
        <TextWindow text={failure.trace} />
      ) : (
        chain.map((raised, at) => <RaisedError key={at} raised={raised} first={at === 0} />)
      )}
    </div>
  );
}

function RaisedError({ raised, first }: { raised: Raised; first: boolean }) {
  const { letters: text } = useText();
  const links: Record<string, string> = { cause: text.failure.cause, context: text.failure.context, member: text.failure.member };
  return (
    <section className={classes.raised}>
      {!first && <p className={classes.link}>{known(links, raised.link) ?? text.failure.before}</p>}
      <h2 className={classes.error}>
        <Untrusted mono text={raised.type} most={300} />
      </h2>
      {raised.text !== '' && (
        <p className={classes.text} tabIndex={raised.text.length > SCROLLS ? 0 : undefined}>
          <Untrusted block text={raised.text} most={8192} />
        </p>
      )}
      {raised.frames.length === 0 ? (
        <p className="rd-dim">{text.failure.noFrames}</p>
      ) : (
        <ol className={classes.frames}>
          {runsOf(raised.frames).map((run) => (
            <FrameRun key={run.first} run={run} />
          ))}
        </ol>
      )}
    </section>
  );
}

interface Run {
  first: number;
  own: boolean;
  frames: Frame[];
}

/** Frames of libraries that stand together are told as one; if nothing is one's own, nothing is folded. */
function runsOf(frames: readonly Frame[]): Run[] {
  const all: Run[] = [];
  const anyOwn = frames.some((frame) => frame.own);
  frames.forEach((frame, at) => {
    const last = all.at(-1);
    if (anyOwn && !frame.own && last !== undefined && !last.own) last.frames.push(frame);
    else all.push({ first: at, own: frame.own || !anyOwn, frames: [frame] });
  });
  return all;
}

function FrameRun({ run }: { run: Run }) {
  const { letters: text } = useText();
  const [open, setOpen] = useState(false);
  if (run.own) return <>{run.frames.map((frame, at) => <FrameLine key={at} frame={frame} />)}</>;
  const Shape = open ? IconChevronDown : IconChevronRight;
  return (
    <>
      <li className={classes.folded}>
        <button type="button" aria-expanded={open} className={classes.fold} onClick={() => setOpen(!open)}>
          <Shape size={13} aria-hidden /> {text.failure.library(run.frames.length)}
        </button>
      </li>
      {open && run.frames.map((frame, at) => <FrameLine key={at} frame={frame} />)}
    </>
  );
}

function FrameLine({ frame }: { frame: Frame }) {
  const { letters: text } = useText();
  return (
    <li className={classes.frame} data-own={frame.own || undefined}>
      <div className={classes.where}>
        <Untrusted mono text={frame.function} most={200} />
        <span className="rd-dim">
          <Untrusted mono text={frame.file} most={300} />
          {`, ${text.failure.line(frame.line)}`}
        </span>
        {frame.own && <span className={classes.own}>{text.failure.own}</span>}
      </div>
      {frame.source !== '' && (
        <pre className={classes.source}>
          <Untrusted text={frame.source} most={512} />
        </pre>
      )}
    </li>
  );
}
