import classes from './Navigation.module.css';

export function Brand() {
  return (
    <div className={classes.brand}>
      <svg viewBox="0 0 32 32" width={22} height={22} aria-hidden>
        <rect width="32" height="32" rx="7" fill="var(--rd-accent)" />
        <path
          d="M10 23V9h7a4.5 4.5 0 0 1 0 9h-7m6.5 0L23 23"
          fill="none"
          stroke="var(--rd-surface)"
          strokeWidth="2.8"
          strokeLinecap="round"
          strokeLinejoin="round"
        />
      </svg>
      Redrive
    </div>
  );
}
