import { ApiProblem } from '@/api/problem';
import { ProblemNote } from '@/shared/ProblemNote';
import classes from './SignInPage.module.css';

interface Props {
  error: unknown;
  /** What a refusal means here, for the server says nothing that helps guessing. */
  what: string;
  help: string;
}

export function Wrong({ error, what, help }: Props) {
  if (error === null) return null;
  if (!(error instanceof ApiProblem) || error.status !== 401) return <ProblemNote error={error} />;
  return (
    <div role="alert" className={classes.wrong}>
      <strong>{what}</strong> {help}
    </div>
  );
}
