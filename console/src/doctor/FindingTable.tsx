import type { Finding } from '@/api/types';
import { useText } from '@/locales/language';
import table from '@/shared/table.module.css';
import { Untrusted } from '@/shared/Untrusted';
import { LevelBadge } from './LevelBadge';
import classes from './DoctorPage.module.css';

export function FindingTable({ findings }: { findings: readonly Finding[] }) {
  const { columns } = useText().doctor;
  return (
    <table className={table.table}>
      <thead>
        <tr>
          <th scope="col">{columns.level}</th>
          <th scope="col">{columns.check}</th>
          <th scope="col">{columns.what}</th>
          <th scope="col">{columns.remedy}</th>
        </tr>
      </thead>
      <tbody>
        {findings.map((finding, at) => (
          <FindingRow key={at} finding={finding} />
        ))}
      </tbody>
    </table>
  );
}

function FindingRow({ finding }: { finding: Finding }) {
  return (
    <tr>
      <td className={classes.level}>
        <LevelBadge level={finding.level} />
      </td>
      <td className={classes.check}>
        <Untrusted mono text={finding.check} most={60} />
      </td>
      <td className={classes.what}>
        {finding.queue !== null && (
          <span className={classes.queue}>
            <Untrusted mono text={finding.queue} most={120} />
          </span>
        )}
        <Untrusted text={finding.what} most={600} />
      </td>
      <td className={classes.remedy}>
        <Untrusted text={finding.remedy} most={600} />
      </td>
    </tr>
  );
}
