import type { RunJson } from '@/api/types';
import { headerClass } from './header-class';

type Operation = RunJson['edit'][number];
const LONGEST = 200;

/** A value as JSON. Integers that JavaScript has no number for are bigints, and stand with every digit. */
function jsonOf(value: unknown): string {
  if (typeof value === 'bigint') return value.toString();
  if (Array.isArray(value)) return `[${value.map(jsonOf).join(', ')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  return `{${Object.entries(value)
    .map(([key, each]) => `${JSON.stringify(key)}: ${jsonOf(each)}`)
    .join(', ')}}`;
}

function short(text: string): string {
  return text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text;
}

/** An operation on one line. What lets somebody in is not told. */
export function operationLine(operation: Operation, hidden: string): string {
  switch (operation.op) {
    case 'remove':
      return `remove ${operation.path}`;
    case 'remove-header':
      return `remove-header ${operation.name}`;
    case 'rename':
      return `rename ${operation.path} → ${operation.to}`;
    case 'move':
    case 'copy':
      return `${operation.op} ${operation.from} → ${operation.path}`;
    case 'set-payload':
      return `set-payload (${Math.floor((operation.payload.replace(/=+$/, '').length * 3) / 4)} B)`;
    case 'set-header':
      return `set-header ${operation.name} = ${headerClass(operation.name) === 'sensitive' ? hidden : short(jsonOf(operation.value))}`;
    default:
      return `${operation.op} ${operation.path} = ${short(jsonOf(operation.value))}`;
  }
}
