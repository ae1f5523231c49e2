import type { ReactNode } from 'react';
import classes from './Section.module.css';

interface Props {
  title: string;
  /** Beside the title: what it is of. */
  aside?: ReactNode;
  /** On the right: where there is more, or what can be done. */
  more?: ReactNode;
  /** What is inside reaches to the edges. */
  flush?: boolean;
  children: ReactNode;
}

/** A part of a page. */
export function Section({ title, aside, more, flush = false, children }: Props) {
  return (
    <section className={`rd-panel ${classes.section ?? ''}`}>
      <header className={classes.head} data-flush={flush || undefined}>
        <h2 className={classes.title}>{title}</h2>
        {aside !== undefined && <span className={classes.aside}>{aside}</span>}
        {more !== undefined && <span className={classes.more}>{more}</span>}
      </header>
      <div className={flush ? undefined : classes.body}>{children}</div>
    </section>
  );
}
