/** The launcher at its last step, filled in with an entry of the launch history. */
export function recentAddress(id: string): string {
  return `/launcher?recent=${encodeURIComponent(id)}&step=confirm`
}
