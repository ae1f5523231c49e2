import type { components } from '@/api/schema';

export type Raised = components['schemas']['RaisedJson'];
export type Frame = components['schemas']['FrameJson'];

export interface Run {
  /** Whether these frames are the team's code; the others are Python's and libraries'. */
  own: boolean;
  frames: Frame[];
}

/** Frames as they are read: where it was raised first, neighbours of one kind together. */
export function runsOf(frames: readonly Frame[]): Run[] {
  const runs: Run[] = [];
  for (const frame of [...frames].reverse()) {
    const last = runs.at(-1);
    if (last?.own === frame.own) last.frames.push(frame);
    else runs.push({ own: frame.own, frames: [frame] });
  }
  return runs;
}

/** What was raised last first: what led to it stands below. */
export const newestFirst = (chain: readonly Raised[]): Raised[] => [...chain].reverse();
