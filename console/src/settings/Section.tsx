import type { ReactNode } from 'react';
import classes from './Settings.module.css';

interface Props {
  title: string;
  /** Below the title: what it is about. */
  intro?: ReactNode;
  actions?: ReactNode;
  /** What is inside reaches to the edges. */
  flush?: boolean;
  children: ReactNode;
}

export function Section({ title, intro, actions, flush = false, children }: Props) {
  return (
    <section className={`rd-panel ${classes.section ?? ''}`}>
      <div className={classes.head}>
        <div className={classes.words}>
          <h2>{title}</h2>
          {intro !== undefined && <p>{intro}</p>}
        </div>
        {actions}
      </div>
      <div className={flush ? undefined : classes.body}>{children}</div>
    </section>
  );
}

/** Names and what they are, side by side. */
export function Facts({ children }: { children: ReactNode }) {
  return <dl className={classes.facts}>{children}</dl>;
}

export function Fact({ label, children }: { label: ReactNode; children: ReactNode }) {
  return (
    <>
      <dt>{label}</dt>
      <dd>{children}</dd>
    </>
  );
}
