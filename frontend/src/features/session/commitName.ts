/** Whether a name keeps the rule for names of customized images. */
export function isCommitName(name: string): boolean {
  return /^[a-zA-Z0-9_-]{4,32}$/.test(name)
}

/** The name that is offered for an image of a session: the session's, as far as the rule lets it. */
export function commitNameOf(session: string): string {
  return session
    .replace(/[^a-zA-Z0-9_-]+/g, '-')
    .slice(0, 32)
    .replace(/-+$/, '')
    .padEnd(4, '-1')
}
