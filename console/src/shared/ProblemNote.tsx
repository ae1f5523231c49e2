import { Button } from '@mantine/core';
import { IconAlertTriangle } from '@tabler/icons-react';
import { NO_ANSWER, problemFrom } from '@/api/problem';
import { useText } from '@/locales/language';
import { Untrusted } from './Untrusted';
import classes from './states.module.css';

interface Props {
  error: unknown;
  onRetry?: (() => void) | undefined;
}

/** What happened, what to do about it, and how to find it in the server's log. */
export function ProblemNote({ error, onRetry }: Props) {
  const { shared } = useText();
  const problem = problemFrom(error);
  const silent = problem.status === NO_ANSWER;
  const what = silent ? shared.problem.unreachable : problem.detail || problem.title || shared.problem.unexpected;
  const remedy = silent ? shared.problem.unreachableRemedy : problem.remedy;
  return (
    <div role="alert" className={classes.problem}>
      <IconAlertTriangle size={18} stroke={1.8} aria-hidden className={classes.alarm} />
      <div className={classes.told}>
        <p className={classes.title}>
          <Untrusted text={what} most={2000} />
        </p>
        {remedy !== '' && (
          <p className={classes.what}>
            <Untrusted text={remedy} most={2000} />
          </p>
        )}
        {problem.requestId !== '' && (
          <p className={classes.request}>
            {shared.problem.request} <Untrusted mono text={problem.requestId} />
          </p>
        )}
      </div>
      {onRetry !== undefined && <Button onClick={onRetry}>{shared.retry}</Button>}
    </div>
  );
}
