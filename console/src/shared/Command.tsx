import { CopyButton } from './CopyButton';
import { Untrusted } from './Untrusted';
import classes from './Command.module.css';

/** Something for a terminal, to be read and copied. */
export function Command({ text }: { text: string }) {
  return (
    <div className={classes.command}>
      <pre>
        <Untrusted block text={text} most={2000} />
      </pre>
      <CopyButton value={text} />
    </div>
  );
}
