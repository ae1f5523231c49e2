import { IconAlertCircle, IconAlertTriangle, IconFlame, IconInfoCircle, type Icon } from '@tabler/icons-react';
import { useText } from '@/locales/language';
import tones from '@/shared/tones.module.css';
import type { Severity } from './alerts';
import classes from './alerts.module.css';

const SHAPES: Record<Severity, [Icon, string | undefined]> = {
  critical: [IconFlame, classes.critical],
  error: [IconAlertCircle, tones.bad],
  warning: [IconAlertTriangle, tones.warn],
  info: [IconInfoCircle, tones.plain],
};

/** How bad it is, by its word, its shape and its colour. What is over has lost the colour. */
export function SeverityBadge({ severity, over = false }: { severity: Severity; over?: boolean }) {
  const { alerts: text } = useText();
  const [Shape, tone] = SHAPES[severity];
  return (
    <span className={`${tones.badge ?? ''} ${(over ? tones.plain : tone) ?? ''}`} data-severity={severity}>
      <Shape size={13} stroke={2.2} aria-hidden />
      {text.severity[severity]}
    </span>
  );
}
