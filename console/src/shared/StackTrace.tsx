import { Button } from '@mantine/core';
import { IconChevronRight } from '@tabler/icons-react';
import { useState } from 'react';
import { useText } from '@/locales/language';
import { CopyButton } from './CopyButton';
import { newestFirst, runsOf, type Frame, type Raised, type Run } from './stack-frames';
import { TextWindow } from './TextWindow';
import { Untrusted } from './Untrusted';
import { known } from './known';
import classes from './StackTrace.module.css';

const AT_ONCE = 30;
const MOST_TEXT = 8192;
/** So long that it may need scrolling, which the keyboard must reach. */
const SCROLLS = 600;

interface Props {
  chain: readonly Raised[];
  /** As it was printed, to be read and copied; undefined: only what was read of it is shown. */
  printed?: string;
}

/**
 * What was raised, and where: the last exception first, what led to it below. The team's own frames stand out;
 * those of libraries are folded. A link to a line of code is not made: the console does not know where it lies.
 */
export function StackTrace({ chain, printed }: Props) {
  const { trace: text } = useText().shared;
  const [raw, setRaw] = useState(false);
  if (printed === undefined) return <Chain chain={chain} />;
  return (
    <>
      <div className={classes.tools}>
        <span className="rd-dim">{!raw && chain.some((each) => each.frames.length > 1) && text.order}</span>
        <span className={classes.buttons}>
          <Button size="compact-xs" aria-pressed={raw} onClick={() => setRaw(!raw)}>
            {raw ? text.frames : text.raw}
          </Button>
          <CopyButton value={printed} title={text.copy} />
        </span>
      </div>
      {raw ? <TextWindow text={printed} /> : <Chain chain={chain} />}
    </>
  );
}

function Chain({ chain }: { chain: readonly Raised[] }) {
  const { shared } = useText();
  if (chain.length === 0) return <p className="rd-dim">{shared.trace.none}</p>;
  return (
    <ol className={classes.chain}>
      {newestFirst(chain).map((raised, at) => (
        <li key={at} className={classes.raised}>
          {at > 0 && <p className={classes.link}>{linkWords(raised.link, shared.trace.links)}</p>}
          <p className={classes.type}>
            <Untrusted mono text={raised.type} most={300} />
          </p>
          {raised.text !== '' && (
            <p className={classes.text} tabIndex={raised.text.length > SCROLLS ? 0 : undefined}>
              <Untrusted block text={raised.text} most={MOST_TEXT} />
            </p>
          )}
          <Frames frames={raised.frames} />
        </li>
      ))}
    </ol>
  );
}

function linkWords(link: string, words: Record<string, string>): string {
  return known(words, link) ?? words.context ?? link;
}

function Frames({ frames }: { frames: readonly Frame[] }) {
  const { shared } = useText();
  const [most, setMost] = useState(AT_ONCE);
  if (frames.length === 0) return <p className={classes.unknown}>{shared.trace.none}</p>;
  const runs = runsOf(frames);
  const anyOwn = runs.some((run) => run.own);
  return (
    <ol className={classes.frames}>
      {runs.slice(0, most).map((run, at) =>
        run.own ? <OwnRun key={at} run={run} /> : <Folded key={at} run={run} open={!anyOwn && at === 0} />,
      )}
      {runs.length > most && (
        <li>
          <button type="button" className={classes.fold} onClick={() => setMost(most + 10 * AT_ONCE)}>
            {shared.trace.more(runs.length - most)}
          </button>
        </li>
      )}
    </ol>
  );
}

function OwnRun({ run }: { run: Run }) {
  const { shared } = useText();
  const [most, setMost] = useState(AT_ONCE);
  return (
    <>
      {run.frames.slice(0, most).map((frame, at) => (
        <FrameLine key={at} frame={frame} />
      ))}
      {run.frames.length > most && (
        <li>
          <button type="button" className={classes.fold} onClick={() => setMost(most + 10 * AT_ONCE)}>
            {shared.trace.more(run.frames.length - most)}
          </button>
        </li>
      )}
    </>
  );
}

function Folded({ run, open: opened }: { run: Run; open: boolean }) {
  const { shared } = useText();
  const [open, setOpen] = useState(opened);
  return (
    <>
      <li>
        <button type="button" className={classes.fold} aria-expanded={open} onClick={() => setOpen(!open)}>
          <IconChevronRight size={13} stroke={2} aria-hidden className={classes.arrow} />
          {shared.trace.library(run.frames.length)}
        </button>
      </li>
      {open && <OwnRun run={run} />}
    </>
  );
}

function FrameLine({ frame }: { frame: Frame }) {
  const { shared } = useText();
  return (
    <li className={frame.own ? classes.own : classes.other}>
      <span className={classes.where}>
        <Untrusted mono text={`${frame.file}:${frame.line}`} most={400} />
        <span className={classes.in}>
          {shared.trace.in} <Untrusted mono text={frame.function} most={200} />
        </span>
        {frame.own && <span className={classes.mark}>{shared.trace.own}</span>}
      </span>
      {frame.source !== '' && (
        <code className={classes.source}>
          <Untrusted mono text={frame.source} most={400} />
        </code>
      )}
    </li>
  );
}
