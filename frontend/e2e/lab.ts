import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { createHmac } from 'node:crypto'
import { once } from 'node:events'
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { connect } from 'node:net'
import { tmpdir, userInfo } from 'node:os'
import { join } from 'node:path'
import { Cable } from './cable'
import { eventually, freePort } from './program'

/** What opens the person's key. */
export const passphrase = 'correct horse battery staple'
/** What a lab that asks for a code is logged in to with, before the code. */
export const password = 'tr0ub4dor and three'
/** Of the one-time codes, in base 32 as an authenticator shows it. */
const seed = 'JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP'

/**
 * Lab is a machine that the person has only a login to: a real sshd with a home
 * of its own, reached by a cable that can be taken out, with the test engine as
 * its Docker. The person's key has a passphrase, which their ssh-agent keeps
 * once it was typed, and the machine's key is not known yet.
 */
export class Lab {
  readonly dir = mkdtempSync(join(tmpdir(), 'slipway-lab-'))
  readonly home = join(this.dir, 'home', 'slipway')
  #port = 0
  #cable: Cable | undefined
  readonly #children: ChildProcess[] = []
  #log = ''

  /** Lets in by the person's key, or by a password and a one-time code. */
  constructor(readonly login: 'key' | 'code' = 'key') {}

  #at(name: string): string {
    return join(this.dir, name)
  }

  get cable(): Cable {
    if (!this.#cable) throw new Error('the lab is not open')
    return this.#cable
  }

  /** What the near program is told, so that its ssh finds the lab. */
  get env(): NodeJS.ProcessEnv {
    return { SLIPWAY_SSH_CONFIG: this.#at('ssh_config'), SSH_AUTH_SOCK: this.#at('agent.sock') }
  }

  async open(): Promise<void> {
    mkdirSync(this.#at('home'))
    mkdirSync('/run/sshd', { recursive: true }) // sshd insists on the folder
    this.#keygen('id', passphrase)
    this.#port = await freePort()
    this.#cable = await Cable.to(this.#port)
    this.docker('')
    this.#write('shell', `#!/bin/sh\n. ${this.#at('env')}\ncd "$HOME" || exit 1\nexec sh -c "$SSH_ORIGINAL_COMMAND"\n`)
    chmodSync(this.#at('shell'), 0o700)
    const authorized = readFileSync(this.#at('id.pub'), 'utf8')
    this.#write('authorized', authorized)
    this.#write(
      'ssh_config',
      `Host lab\n  HostName 127.0.0.1\n  Port ${this.cable.port}\n  HostKeyAlias lab\nHost *\n  User ` +
        `${userInfo().username}\n  UserKnownHostsFile ${this.#at('known')}\n  GlobalKnownHostsFile none\n` +
        `  IdentityFile ${this.#at('id')}\n  IdentitiesOnly yes\n  IdentityAgent ${this.#at('agent.sock')}\n  ` +
        `AddKeysToAgent yes\n  UpdateHostKeys no\n`,
    )
    this.#write('password', password)
    this.#write('check', `#!/bin/sh\n[ "$(tr -d '\\0')" = "$(cat ${this.#at('password')})" ]\n`)
    chmodSync(this.#at('check'), 0o700)
    this.#write('codes', `${seed}\n" TOTP_AUTH\n`)
    this.#write(
      'pam',
      `auth requisite pam_exec.so quiet expose_authtok ${this.#at('check')}\n` +
        `auth required pam_google_authenticator.so secret=${this.#at('codes')} user=${userInfo().username} ` +
        `no_strict_owner\n` +
        'account required pam_permit.so\nsession required pam_permit.so\npassword required pam_deny.so\n',
    )
    this.#run('ssh-agent', ['-D', '-a', this.#at('agent.sock')])
    await this.rekey()
  }

  #write(name: string, text: string): void {
    writeFileSync(this.#at(name), text, { mode: 0o600 })
  }

  #keygen(name: string, secret: string): void {
    execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', secret, '-C', 'lab', '-f', this.#at(name)])
  }

  #run(program: string, args: string[]): ChildProcess {
    const child = spawn(program, args, { stdio: ['ignore', 'ignore', 'pipe'] })
    child.stderr?.on('data', (chunk: Buffer) => {
      this.#log += chunk.toString()
    })
    this.#children.push(child)
    return child
  }

  /** Sets where the lab's Docker is; empty: it has none. */
  docker(host: string): void {
    this.#write(
      'env',
      `export HOME=${this.#at('home')} SLIPWAY_HOME=${this.home} ` +
        `DOCKER_HOST=${host || `unix://${this.#at('no-docker.sock')}`}\n` +
        `export XDG_RUNTIME_DIR=${this.dir}\nunset XDG_DATA_HOME\n`,
    )
  }

  #sshd: ChildProcess | undefined

  /** Starts sshd, with another key than before. */
  async rekey(): Promise<void> {
    if (this.#sshd) await end(this.#sshd)
    for (const name of ['host', 'host.pub']) rmSync(this.#at(name), { force: true })
    this.#keygen('host', '')
    this.#write(
      'sshd_config',
      [
        'ListenAddress 127.0.0.1',
        `Port ${this.#port}`,
        `HostKey ${this.#at('host')}`,
        'PidFile none',
        'StrictModes no',
        'PasswordAuthentication no',
      ]
        .concat(
          this.login === 'key'
            ? ['UsePAM no', 'KbdInteractiveAuthentication no']
            : ['UsePAM yes', 'KbdInteractiveAuthentication yes', 'AuthenticationMethods keyboard-interactive'],
        )
        .concat([
          `AuthorizedKeysFile ${this.#at('authorized')}`,
          'PermitRootLogin yes',
          'PrintMotd no',
          `ForceCommand ${this.#at('shell')}`,
          '',
        ])
        .join('\n'),
    )
    // In a view of the files of its own, in which its rules for logins stand in the place of the machine's.
    const sshd = ['/usr/sbin/sshd', '-D', '-e', '-f', this.#at('sshd_config')]
    this.#sshd =
      this.login === 'key'
        ? this.#run(sshd[0] ?? '', sshd.slice(1))
        : this.#run('unshare', [
            '--mount',
            'sh',
            '-c',
            `mount --bind ${this.#at('pam')} /etc/pam.d/sshd && exec ${sshd.join(' ')}`,
          ])
    await eventually('sshd listens', async () => {
      if (this.#sshd?.exitCode !== null) throw new Error(`sshd ended: ${this.#log}`)
      return listens(this.#port)
    })
  }

  /** The one-time code that an authenticator shows now (RFC 6238). */
  get code(): string {
    const letters = [...seed]
      .map((letter) => 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'.indexOf(letter).toString(2).padStart(5, '0'))
      .join('')
    const key = Buffer.from((letters.match(/.{8}/g) ?? []).map((bits) => parseInt(bits, 2)))
    const step = Buffer.alloc(8)
    step.writeBigUInt64BE(BigInt(Math.floor(Date.now() / 30_000)))
    const sum = createHmac('sha1', key).update(step).digest()
    const at = sum.readUInt8(sum.length - 1) & 15
    return String((sum.readUInt32BE(at) & 0x7fffffff) % 1_000_000).padStart(6, '0')
  }

  /** The fingerprint of the machine's key. */
  get fingerprint(): string {
    return execFileSync('ssh-keygen', ['-lf', this.#at('host.pub')], { encoding: 'utf8' }).split(' ')[1] ?? ''
  }

  /** What runs there of the lab's own programs. */
  processes(): number[] {
    return readdirSync('/proc')
      .filter((name) => /^\d+$/.test(name))
      .map(Number)
      .filter((pid) => {
        try {
          return readlinkSync(`/proc/${pid}/exe`).startsWith(this.home)
        } catch {
          return false // it has ended, or is somebody else's
        }
      })
  }

  /** Kills what runs there of the lab's own programs, of which one may end with another. */
  kill(): void {
    for (const pid of this.processes()) {
      try {
        process.kill(pid, 'SIGKILL')
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
      }
    }
  }

  async close(): Promise<void> {
    this.kill()
    for (const child of this.#children) await end(child)
    await this.#cable?.close()
    rmSync(this.dir, { recursive: true, force: true })
  }
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const gone = once(child, 'exit')
  child.kill('SIGTERM')
  await gone
}

function listens(port: number): Promise<boolean> {
  return new Promise((answer) => {
    const socket = connect(port, '127.0.0.1')
    socket.once('connect', () => {
      socket.destroy()
      answer(true)
    })
    socket.once('error', () => answer(false))
  })
}
