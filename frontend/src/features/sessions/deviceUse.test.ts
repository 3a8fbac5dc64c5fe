import { describe, expect, it } from 'vitest'
import { makeSession } from '@/api/testing/session'
import type { DeviceLoad, Usage } from '@/api/types.gen'
import { deviceUse } from './deviceUse'

const usage = (gpus: DeviceLoad[]): Usage => ({
  session: 's',
  at: '',
  cpu: 0,
  memory: 0,
  memLimit: 0,
  netRx: 0,
  netTx: 0,
  diskRead: 0,
  diskWrite: 0,
  pids: 0,
  gpus,
})
const session = makeSession({
  grants: {
    cpus: [],
    memory: 0,
    gpus: [
      { device: 'a', share: 500, memory: 10 },
      { device: 'b', share: 1000, memory: 20, whole: true },
    ],
  },
})

describe('deviceUse', () => {
  it('adds up what is held and used on every device', () => {
    expect(
      deviceUse(
        session,
        usage([
          { device: 'a', util: 4000, memory: 3 },
          { device: 'b', util: 9000 },
        ]),
      ),
    ).toEqual({ load: 13_000, devices: 2, average: 6500, memory: 3, granted: 1500, promised: 30 })
  })
  it('never has more than all of each device', () => {
    const full = ['a', 'b', 'c', 'd'].map((device) => ({ device, util: 10_400 }))
    expect(deviceUse(session, usage(full))).toMatchObject({ load: 40_000, devices: 4, average: 10_000 })
  })
  it('knows no load where no device tells one', () => {
    expect(deviceUse(session, usage([{ device: 'a' }]))).toMatchObject({ load: undefined, memory: undefined })
    expect(deviceUse(makeSession(), undefined)).toMatchObject({ load: undefined, average: undefined, devices: 0 })
  })
})
