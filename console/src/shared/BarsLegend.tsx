import { Link } from 'react-router';
import { colourOf, type Series } from './bars';
import { Untrusted } from './Untrusted';
import classes from './BarsLegend.module.css';

interface Props {
  series: readonly Series[];
  linkOf?: ((series: Series) => string | null) | undefined;
}

/** Which colour is what. Those who listen have the table, and hear of it only where it leads somewhere. */
export function BarsLegend({ series, linkOf }: Props) {
  if (series.length === 0 || (series.length < 2 && linkOf === undefined)) return null;
  return (
    <ul className={classes.legend} aria-hidden={linkOf === undefined || undefined}>
      {series.map((each, at) => (
        <li key={each.id}>
          <svg width={9} height={9} aria-hidden>
            <rect width={9} height={9} rx={2} fill={colourOf(each, at)} />
          </svg>
          <Name series={each} to={linkOf?.(each) ?? null} />
        </li>
      ))}
    </ul>
  );
}

function Name({ series, to }: { series: Series; to: string | null }) {
  const name = <Untrusted text={series.name} most={90} />;
  return to === null ? (
    <span className={classes.name}>{name}</span>
  ) : (
    <Link to={to} className={classes.name}>
      {name}
    </Link>
  );
}
