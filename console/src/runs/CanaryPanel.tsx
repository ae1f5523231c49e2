import { IconAlertTriangle, IconCheck, IconCircle, IconHourglass, IconSend, type Icon } from '@tabler/icons-react';
import type { RunJson } from '@/api/types';
import { useFormat, useText } from '@/locales/language';
import { cameBack, stepsOf, type StepState } from './run-figures';
import page from './run-page.module.css';

const SHAPES: Record<StepState, Icon> = {
  good: IconCheck,
  sending: IconSend,
  waiting: IconHourglass,
  failed: IconAlertTriangle,
  later: IconCircle,
};

/** The steps of the canary: which were good, which is waited for, and what stops it. */
export function CanaryPanel({ run }: { run: RunJson }) {
  const { runs } = useText();
  const text = runs.canary;
  const format = useFormat();
  if (run.canary.steps.length === 0) return null;
  const words: Record<StepState, string> = { good: text.good, sending: run.status === 'PAUSED' ? runs.why.PAUSED : text.sending, waiting: text.now, failed: text.failed, later: text.later };
  return (
    <section className={`rd-panel ${page.panel ?? ''}`} aria-label={text.title}>
      <h2 className={page.title}>{text.title}</h2>
      <ol className={page.steps}>
        {stepsOf(run).map(({ upTo, state }) => {
          const Shape = SHAPES[state];
          return (
            <li key={upTo ?? 'rest'} data-state={state} aria-current={state === 'waiting' || state === 'sending' ? 'step' : undefined}>
              <Shape size={16} stroke={2} aria-hidden />
              <span>
                <strong>{upTo === null ? text.rest : text.step(format.number(upTo))}</strong>
                <span>
                  {words[state]}
                  {state === 'failed' && ` (${runs.of(format.number(cameBack(run)), format.number(run.progress.sent))})`}
                </span>
              </span>
            </li>
          );
        })}
      </ol>
      <p className={page.note}>{text.rule(format.percent(run.canary.at_most_back), format.duration(run.canary.wait))}</p>
    </section>
  );
}
