/** What is wrong with a session's name, as a key of the translations; undefined if nothing is. */
export function nameIssue(name: string): 'short' | 'long' | 'edges' | 'body' | undefined {
  if (name.length < 4) return 'short'
  if (name.length > 64) return 'long'
  if (!/^[A-Za-z0-9_.-]*$/.test(name)) return 'body'
  if (!/^[A-Za-z0-9_].*[A-Za-z0-9_]$/.test(name)) return 'edges'
  return undefined
}
