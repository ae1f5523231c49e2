import type { RunJson } from '@/api/types';
import { useFormat, useText } from '@/locales/language';
import { figuresOf, PARTS } from './run-figures';
import classes from './runs.module.css';

/** All letters of a run as one bar, by what became of them. */
export function ProgressBar({ run, tall = false }: { run: RunJson; tall?: boolean }) {
  const { runs } = useText();
  const format = useFormat();
  const figures = figuresOf(run);
  const whole = PARTS.reduce((sum, part) => sum + figures[part], 0) || 1;
  const told = PARTS.filter((part) => figures[part] > 0).map((part) => `${runs.progress.parts[part]}: ${format.number(figures[part])}`);
  return (
    <div className={classes.bar} data-tall={tall || undefined} role="img" aria-label={told.join(', ')} title={told.join('\n')}>
      {PARTS.map((part) =>
        figures[part] === 0 ? null : <span key={part} data-part={part} className={classes.part} style={{ flexGrow: figures[part] / whole }} />,
      )}
    </div>
  );
}
