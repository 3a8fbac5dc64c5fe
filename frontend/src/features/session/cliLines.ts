import type { Session } from '@/api/types.gen'
import { isLive } from '@/lib/status'

interface CliLine {
  key: 'attach' | 'ssh' | 'logs' | 'exec' | 'stop' | 'show'
  line: string
}

/**
 * Command lines that do with a session what the buttons do. A name serves as long as the session lives, then the id.
 */
export function cliLines(session: Session): CliLine[] {
  const live = isLive(session.status)
  const target = live ? session.name : session.id
  const lines: CliLine[] = []
  if (session.status === 'RUNNING') {
    lines.push(
      { key: 'attach', line: `slipway attach ${target}` },
      { key: 'exec', line: `slipway exec ${target} -- nproc` },
    )
  }
  if (session.status === 'RUNNING' && !session.spec.noSSH) lines.push({ key: 'ssh', line: `slipway ssh ${target}` })
  lines.push({ key: 'logs', line: `slipway logs ${live ? '-f ' : ''}${target}` })
  if (live) lines.push({ key: 'stop', line: `slipway stop ${target}` })
  lines.push({ key: 'show', line: `slipway show ${target} -o json` })
  return lines
}
