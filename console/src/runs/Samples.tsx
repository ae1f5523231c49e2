import { Link } from 'react-router';
import type { EditedSample } from '@/api/types';
import { useText } from '@/locales/language';
import { paths } from '@/routes/paths';
import { Untrusted } from '@/shared/Untrusted';
import classes from './dialogs.module.css';

const MOST = 12;
const TONES: Record<string, string | undefined> = { '+': classes.added, '-': classes.removed, '~': classes.altered };

/** What the edit does to the first few letters, place by place, and where it does not fit. Masked by the server. */
export function Samples({ samples }: { samples: readonly EditedSample[] }) {
  const { runs } = useText();
  const text = runs.redrive.edit;
  if (samples.length === 0) return null;
  return (
    <div>
      <h4 className={classes.subheading}>{text.samples}</h4>
      <ul className={classes.samples}>
        {samples.map((each) => (
          <Sample key={each.letter_id} sample={each} />
        ))}
      </ul>
    </div>
  );
}

function Sample({ sample }: { sample: EditedSample }) {
  const { runs } = useText();
  const text = runs.redrive.edit;
  return (
    <li>
      <Link to={paths.letter(sample.letter_id)} target="_blank" className="rd-mono">
        <Untrusted text={sample.letter_id.slice(0, 13)} />
      </Link>
      {sample.refused !== '' && (
        <p className={classes.misfit}>
          <strong>{text.refused}:</strong> <Untrusted text={sample.refused} most={400} />
        </p>
      )}
      {sample.differences.slice(0, MOST).map((line, at) => (
        <p key={at} className={`${classes.difference ?? ''} ${TONES[line.charAt(0)] ?? ''}`}>
          <Untrusted mono text={line} most={400} />
        </p>
      ))}
      {sample.refused === '' && sample.differences.length === 0 && <p className="rd-dim">{text.same}</p>}
      {sample.misfits.length > 0 && (
        <p className={classes.misfit}>
          <strong>{text.misfit}:</strong> <Untrusted text={sample.misfits.join('; ')} most={600} />
        </p>
      )}
    </li>
  );
}
