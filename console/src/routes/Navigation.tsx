import {
  IconBell,
  IconLayoutDashboard,
  IconListDetails,
  IconMail,
  IconPlayerTrackNext,
  IconSettings,
  IconShieldCheck,
  IconStack2,
  IconStethoscope,
  type Icon,
} from '@tabler/icons-react';
import { NavLink } from 'react-router';
import { useText } from '@/locales/language';
import { Brand } from './Brand';
import { paths } from './paths';
import classes from './Navigation.module.css';

interface Destination {
  to: string;
  label: string;
  icon: Icon;
  /** Behind `g`. */
  key: string;
}

export function useDestinations(): Destination[] {
  const text = useText();
  return [
    { to: paths.overview, label: text.overview.title, icon: IconLayoutDashboard, key: 'o' },
    { to: paths.alerts, label: text.alerts.title, icon: IconBell, key: 'w' },
    { to: paths.groups, label: text.groups.title, icon: IconStack2, key: 'g' },
    { to: paths.letters, label: text.letters.title, icon: IconMail, key: 'l' },
    { to: paths.runs, label: text.runs.title, icon: IconPlayerTrackNext, key: 'r' },
    { to: paths.queues, label: text.queues.title, icon: IconListDetails, key: 'q' },
    { to: paths.audit, label: text.audit.title, icon: IconShieldCheck, key: 'a' },
    { to: paths.doctor, label: text.doctor.title, icon: IconStethoscope, key: 'd' },
    { to: paths.settings, label: text.settings.title, icon: IconSettings, key: 's' },
  ];
}

export function Navigation() {
  const { shell } = useText();
  return (
    <nav className={classes.navigation} aria-label={shell.navigation}>
      <Brand />
      <ul className={classes.list}>
        {useDestinations().map(({ to, label, icon: Shape }) => (
          <li key={to}>
            <NavLink to={to} end={to === paths.overview} className={classes.link ?? ''}>
              <Shape size={17} stroke={1.7} aria-hidden />
              {label}
            </NavLink>
          </li>
        ))}
      </ul>
    </nav>
  );
}
