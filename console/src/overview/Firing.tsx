import { IconChevronRight } from '@tabler/icons-react';
import { Link } from 'react-router';
import { useAlerts } from '@/api/alerts';
import { worstOf } from '@/alerts/alerts';
import { SeverityBadge } from '@/alerts/SeverityBadge';
import { useFormat, useText } from '@/locales/language';
import { paths } from '@/routes/paths';
import { ProblemNote } from '@/shared/ProblemNote';
import { calm } from './calm';
import classes from './Firing.module.css';

const COUNTED = 100;

/** One line if anything is firing, with how bad the worst is. */
export function Firing({ every }: { every: number | false }) {
  const { alerts: text } = useText();
  const format = useFormat();
  const query = useAlerts({ firing: true, limit: COUNTED + 1 }, every);
  const { data, error } = calm(query);
  const firing = data?.items ?? [];
  const worst = worstOf(firing);
  return (
    <>
      {error !== null && <ProblemNote error={error} onRetry={() => void query.refetch()} />}
      {worst !== null && (
        <Link to={paths.alerts} className={`rd-panel ${classes.strip ?? ''}`} data-severity={worst}>
          <SeverityBadge severity={worst} />
          <span className={classes.words}>
            {firing.length > COUNTED ? text.moreFiring(format.number(COUNTED)) : text.areFiring(firing.length)}
          </span>
          <IconChevronRight size={15} aria-hidden className={classes.arrow} />
        </Link>
      )}
    </>
  );
}
