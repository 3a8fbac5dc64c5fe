export type Platform = 'mac' | 'windows' | 'linux'

/** The platform that the page runs on, by what the browser says of it. */
export function platformOf(agent: string): Platform {
  if (/Mac|iPhone|iPad/.test(agent)) return 'mac'
  return /Win/.test(agent) ? 'windows' : 'linux'
}
