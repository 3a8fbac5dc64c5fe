import type { Draft } from './draft'
import type { Issues } from './issueText'
import type { Change } from './useDraft'

/** What every step is given. */
export interface StepProps {
  draft: Draft
  issues: Issues
  change: Change
}
