import { IconAlertTriangle, IconCircleCheck, IconHandStop, type Icon } from '@tabler/icons-react';
import type { PreviewJson } from '@/api/types';
import { useText } from '@/locales/language';
import { known } from '@/shared/known';
import { Untrusted } from '@/shared/Untrusted';
import classes from './dialogs.module.css';

type Check = PreviewJson['checks'][number];

const SHAPES: Record<Check['level'], Icon> = { ok: IconCircleCheck, warn: IconAlertTriangle, stop: IconHandStop };
const WORST_FIRST: readonly Check['level'][] = ['stop', 'warn'];

/** What speaks against it first; what is good can be unfolded. */
export function Checks({ checks }: { checks: readonly Check[] }) {
  const { runs } = useText();
  const text = runs.redrive;
  const against = WORST_FIRST.flatMap((level) => checks.filter((each) => each.level === level));
  const good = checks.filter((each) => each.level === 'ok');
  return (
    <div className={classes.checks}>
      <h4 className={classes.subheading}>{text.checks}</h4>
      {against.length > 0 && (
        <ul className={classes.checkList}>
          {against.map((each) => (
            <CheckLine key={each.name} check={each} />
          ))}
        </ul>
      )}
      {good.length > 0 && (
        <details className={classes.good}>
          <summary>
            <IconCircleCheck size={15} aria-hidden className={classes.ok} /> {text.allGood(good.length)}
          </summary>
          <ul className={classes.checkList}>
            {good.map((each) => (
              <CheckLine key={each.name} check={each} />
            ))}
          </ul>
        </details>
      )}
    </div>
  );
}

function CheckLine({ check }: { check: Check }) {
  const { runs } = useText();
  const text = runs.redrive;
  const Shape = SHAPES[check.level];
  return (
    <li className={classes.check} data-level={check.level}>
      <Shape size={16} stroke={1.9} className={classes[check.level]} role="img" aria-label={text.level[check.level]} />
      <span>
        <strong><Untrusted text={known(text.check, check.name) ?? check.name} most={60} /></strong> <Untrusted text={check.text} most={600} />
      </span>
    </li>
  );
}
