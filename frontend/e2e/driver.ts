import { execFileSync } from 'node:child_process'
import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'

const source = resolve('../gpu/nvml/testdata/nvml.c')

/** A process that holds memory of a device, as the driver tells. */
interface Held {
  gpu: number
  pid: number
  /** Bytes. */
  memory: number
}

const gib = 1024 ** 3
const uuids = ['GPU-11111111-aaaa-4000-8000-000000000001', 'GPU-22222222-bbbb-4000-8000-000000000002']

/**
 * Driver is NVIDIA's library as the tests of gpu/nvml build it: a device of 80 GiB, and one that is cut into three
 * instances.
 */
export class Driver {
  readonly #dir = mkdtempSync(join(tmpdir(), 'slipway-driver-'))

  constructor() {
    execFileSync('gcc', ['-shared', '-fPIC', '-o', this.#library, source])
    this.hold()
  }

  get #library(): string {
    return join(this.#dir, 'libnvidia-ml.so.1')
  }

  get #state(): string {
    return join(this.#dir, 'state')
  }

  /** What the program has to be told to read this driver. */
  get env(): NodeJS.ProcessEnv {
    return { SLIPWAY_NVML_LIBRARY: this.#library, SLIPWAY_NVML_STATE: this.#state }
  }

  /** The driver tells from now on that these processes hold memory, and no others any. */
  hold(...processes: Held[]): void {
    const used = (gpu: number) => processes.filter((p) => p.gpu === gpu).reduce((sum, p) => sum + p.memory, 0)
    const card = (gpu: number, mig: number) =>
      `gpu uuid=${uuids[gpu]} name=NVIDIA_Test pci=0000000${gpu}:01:00.0 total=${80 * gib} used=${used(gpu)} ` +
      `reserved=0 util=0 power=65000 limit_power=300000 temp=41 mig=${mig} acct=0 cc=90`
    const instance = (n: number, name: string, size: number) =>
      `mig gpu=1 uuid=MIG-33333333-cccc-4000-8000-00000000000${n} gi=${n} name=NVIDIA_Test_MIG_${name} ` +
      `total=${size * gib} used=0`
    const lines = [
      card(0, 0),
      card(1, 1),
      instance(1, '1g.10gb', 10),
      instance(2, '1g.10gb', 10),
      instance(3, '3g.40gb', 40),
    ]
    for (const { gpu, pid, memory } of processes) lines.push(`proc gpu=${gpu} pid=${pid} mem=${memory} kind=C`)
    writeFileSync(`${this.#state}.new`, `${lines.join('\n')}\n`)
    renameSync(`${this.#state}.new`, this.#state)
  }

  close(): void {
    rmSync(this.#dir, { recursive: true, force: true })
  }
}
