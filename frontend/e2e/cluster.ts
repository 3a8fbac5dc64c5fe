import { execFile } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)

/**
 * Cluster is the Slurm cluster of build/slurm/rig.sh as a person has it who may log in: a real sshd on its login node,
 * whose key is known, and a key of the person's own.
 */
export class Cluster {
  readonly #dir = mkdtempSync(join(tmpdir(), 'slipway-cluster-'))
  readonly #config = join(this.#dir, 'ssh_config')

  /** What the near program is told, so that its ssh finds the login node as "cluster". */
  get env(): NodeJS.ProcessEnv {
    return { SLIPWAY_SSH_CONFIG: this.#config }
  }

  async open(): Promise<void> {
    const access = await this.#rig('ssh')
    const [host, port] = readFileSync(join(access, 'address'), 'utf8').trim().split(':')
    writeFileSync(
      this.#config,
      `Host cluster\n  HostName ${host}\n  Port ${port}\n  User ada\n  IdentityFile ${join(access, 'id_ed25519')}\n  ` +
        `IdentitiesOnly yes\n  IdentityAgent none\n  UserKnownHostsFile ${join(access, 'known_hosts')}\n  ` +
        `GlobalKnownHostsFile none\n`,
      { mode: 0o600 },
    )
  }

  /** Runs a script as the person on a node, and returns what it printed. */
  on = (node: 'login' | 'n1' | 'n2', script: string): Promise<string> => this.#rig('exec', node, 'sh', '-c', script)

  /** The processes of the person on a node, but for those that list them. */
  async processes(node: 'login' | 'n1' | 'n2'): Promise<string[]> {
    const all = await this.on(node, 'ps --no-headers -o args -u ada')
    return all.split('\n').filter((line) => !line.includes('ps --no-headers'))
  }

  /** Ends the ssh of a program at once, and with it the tunnel to the login node. */
  async cut(program: number): Promise<void> {
    await run('pkill', ['-KILL', '-P', String(program), '-x', 'ssh'])
  }

  async #rig(...args: string[]): Promise<string> {
    const rig = process.env.SLIPWAY_TEST_SLURM
    if (!rig) throw new Error('SLIPWAY_TEST_SLURM is not set: run through build/ci/slurm.sh')
    return (await run(rig, args)).stdout.trim()
  }

  close(): void {
    rmSync(this.#dir, { recursive: true, force: true })
  }
}
