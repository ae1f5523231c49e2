import { useEffect, type ReactNode } from 'react';
import classes from './PageHeader.module.css';

interface Props {
  title: ReactNode;
  /** The name of the browser's tab; needed where the title is no text. */
  tab?: string;
  /** Beside the title: a count, a status. */
  aside?: ReactNode;
  /** On the right: what can be done. */
  actions?: ReactNode;
  /** Above the title: where this belongs. */
  above?: ReactNode;
}

export function PageHeader({ title, tab, aside, actions, above }: Props) {
  const name = tab ?? (typeof title === 'string' ? title : '');
  useEffect(() => {
    document.title = name === '' ? 'Redrive' : `${name} · Redrive`;
  }, [name]);
  return (
    <header className={classes.header}>
      <div className={classes.words}>
        {above !== undefined && <div className={classes.above}>{above}</div>}
        <div className={classes.line}>
          <h1 className={classes.title}>{title}</h1>
          {aside !== undefined && <div className={classes.aside}>{aside}</div>}
        </div>
      </div>
      {actions !== undefined && <div className={classes.actions}>{actions}</div>}
    </header>
  );
}
