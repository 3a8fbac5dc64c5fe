/** The Folders page with a remembered project open. */
export function projectAddress(id: string): string {
  return `/folders?reopen=${encodeURIComponent(id)}`
}
