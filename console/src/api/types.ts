/** The nouns of the API under short names. Everything else is in schema.d.ts. */
import type { components } from './schema';

type Schemas = components['schemas'];

export type About = Schemas['About'];
export type Alert = Schemas['AlertJson'];
export type ApiToken = Schemas['ApiToken'];
export type Count = Schemas['Count'];
export type EditedSample = Schemas['EditedSample'];
export type Examination = Schemas['Examination'];
export type FailureGroup = Schemas['FailureGroup'];
export type FailureJson = Schemas['FailureJson'];
export type Finding = Schemas['Finding'];
export type Grant = Schemas['Grant'];
export type Happening = Schemas['Happening'];
export type LedgerEntry = Schemas['LedgerEntry'];
export type Letter = Schemas['Letter'];
export type LetterChange = Schemas['LetterChange'];
export type LetterLine = Schemas['LetterLine'];
export type LetterOutcome = Schemas['LetterOutcome'];
export type LetterPage = Schemas['LetterPage'];
export type LoadedSettings = Schemas['Loaded'];
export type MessageJson = Schemas['MessageJson'];
export type Myself = Schemas['Myself'];
export type NewRevision = Schemas['NewRevision'];
export type PreviewJson = Schemas['PreviewJson'];
export type QueueOverview = Schemas['QueueOverview'];
export type RevisionJson = Schemas['RevisionJson'];
export type Role = Schemas['Role'];
export type RunJson = Schemas['RunJson'];
export type RunStatus = Schemas['RunStatus'];
export type Status = Schemas['Status'];
export type User = Schemas['User'];
export type Verdict = Schemas['Verdict'];

/** Which letters: every field that is given must match. */
export type Selection = Partial<Schemas['LetterSelection']>;
/** A run: what is not given is as the server's settings have it. */
export type RunAsked = Partial<Omit<Schemas['RunRequest'], 'selection'>> & { selection: Selection };
export type GroupNotes = Partial<Schemas['GroupNotes']>;
export type NewToken = Pick<Schemas['NewToken'], 'name' | 'grants'> & Partial<Schemas['NewToken']>;
export type NewUser = Pick<Schemas['NewUser'], 'name' | 'password' | 'grants'> & Partial<Schemas['NewUser']>;
export type UserChange = Partial<Schemas['UserChange']>;

/** What somebody may be allowed to do; `docs/access.md` tells what each one is. */
export type Permission =
  | 'letters:read'
  | 'letters:reveal'
  | 'letters:export'
  | 'letters:decide'
  | 'letters:edit'
  | 'letters:purge'
  | 'runs:make'
  | 'runs:approve'
  | 'groups:change'
  | 'audit:read'
  | 'access:manage';
