import { Tooltip } from '@mantine/core';
import { Link } from 'react-router';
import { hasEnded } from '@/api/events';
import type { RunJson } from '@/api/types';
import { useFormat, useText } from '@/locales/language';
import { paths } from '@/routes/paths';
import { addressOf } from '@/shared/address';
import { Instant } from '@/shared/Instant';
import { ProgressBar } from './ProgressBar';
import { figuresOf, PARTS, stepsOf, unsentOf, type Part } from './run-figures';
import type { Freshness } from './useLiveRun';
import page from './run-page.module.css';

/** Always told, also where they are 0. */
const ALWAYS: ReadonlySet<Part> = new Set(['confirmed', 'came_back_same', 'came_back_new', 'without_word']);

const BACK: ReadonlySet<Part> = new Set(['came_back_same', 'came_back_new']);

export function ProgressPanel({ run, freshness }: { run: RunJson; freshness: Freshness }) {
  const { runs } = useText();
  const text = runs.progress;
  const format = useFormat();
  const figures = figuresOf(run);
  const left = unsentOf(run);
  const ended = hasEnded(run.status);
  const waits = stepsOf(run).some(({ state }) => state === 'waiting');
  return (
    <section className={`rd-panel ${page.panel ?? ''}`} aria-label={text.title}>
      <div className={page.headline}>
        <p>
          <strong>{text.sent(format.number(run.progress.sent), format.number(run.total))}</strong>
          {left > 0 && <span className="rd-dim"> · {ended ? text.unsent(left) : text.remaining(left)}</span>}
        </p>
        <p className={page.facts}>
          {run.rate !== null && <span>{runs.perSecond(format.number(run.rate))}</span>}
          {run.estimated_end !== null && !waits && (
            <span>
              {text.end} <Instant at={run.estimated_end} />
            </span>
          )}
          <FreshMark freshness={freshness} />
        </p>
      </div>
      <ProgressBar run={run} tall />
      <dl className={page.legend}>
        {PARTS.filter((part) => figures[part] > 0 || ALWAYS.has(part)).map((part) => (
          <Tooltip key={part} label={text.help[part]} position="bottom">
            <div tabIndex={0} data-part={part} data-zero={figures[part] === 0 || undefined}>
              <dt>{ended && part === 'remaining' ? text.notSent : text.parts[part]}</dt>
              <dd>
                {BACK.has(part) && figures[part] > 0 ? (
                  <Link to={addressOf(paths.run(run.id), { outcome: 'back' })}>{format.number(figures[part])}</Link>
                ) : (
                  format.number(figures[part])
                )}
              </dd>
            </div>
          </Tooltip>
        ))}
      </dl>
    </section>
  );
}

function FreshMark({ freshness }: { freshness: Freshness }) {
  const { runs } = useText();
  const text = runs.progress;
  if (freshness === 'ended') return null;
  const words = { live: text.live, asking: text.polling, still: text.paused }[freshness];
  return (
    <span className={page.fresh} data-fresh={freshness} role="status">
      {words}
    </span>
  );
}
