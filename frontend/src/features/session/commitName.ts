import { COMMIT_NAME } from '../../api/rules.gen'

/** The name that is offered for an image of a session: the session's, as far as the rule lets it. */
export function commitNameOf(session: string): string {
  return session
    .replace(/[^a-zA-Z0-9_-]+/g, '-')
    .slice(0, COMMIT_NAME.max)
    .replace(/-+$/, '')
    .padEnd(COMMIT_NAME.min, '-1')
}
