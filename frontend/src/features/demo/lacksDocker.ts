import type { Machine, Warning } from '@/api/types.gen'

/** Whether a warning says that sessions do not run in Docker. */
export const tellsOfNoDocker = (warning: Warning): boolean => /^engine_(choose|connect)_/.test(warning.code)

/** Whether a machine has no Docker that could be used: what there is to see is seen in the demo. */
export const lacksDocker = (machine: Machine | undefined): boolean =>
  machine !== undefined && (machine.engine === 'sim' || machine.warnings.some(tellsOfNoDocker))
