import table from './table.module.css';

interface Props {
  /** What the columns are called, in their order. */
  columns: Readonly<Record<string, string>>;
  /** The last one, if its name is for those who listen alone. */
  unseen?: string;
}

/** The head of a table whose columns are all alike. */
export function Heads({ columns, unseen }: Props) {
  return (
    <thead>
      <tr>
        {Object.entries(columns).map(([name, label]) => (
          <th key={name} scope="col">
            {label}
          </th>
        ))}
        {unseen !== undefined && (
          <th scope="col">
            <span className={table.unseen}>{unseen}</span>
          </th>
        )}
      </tr>
    </thead>
  );
}
