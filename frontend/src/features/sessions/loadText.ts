import type { TFunction } from 'i18next'
import { formatLoad } from '@/lib/share'
import type { deviceUse } from './deviceUse'

/** The load of one device in percent, of several as how many of them are busy: "3.8 of 4 GPUs busy". */
export function loadText({ load = 0, devices }: ReturnType<typeof deviceUse>, t: TFunction<'sessions'>): string {
  if (devices < 2) return formatLoad(load)
  return t('gpu.busy', { busy: (load / 10_000).toFixed(1).replace('.0', ''), count: devices })
}
