import { once } from 'node:events'
import { connect, createServer, type Server, type Socket } from 'node:net'

/**
 * Cable carries connections to a port of the loopback, and can be taken out: nothing passes then and nobody is told.
 */
export class Cable {
  readonly #server: Server
  readonly #ends = new Set<Socket>()
  #out = false
  #room = Infinity

  private constructor(to: number) {
    this.#server = createServer((near) => {
      const far = connect(to, '127.0.0.1')
      this.#hold(near, far)
      this.#hold(far, near)
    })
  }

  static async to(port: number): Promise<Cable> {
    const cable = new Cable(port)
    cable.#server.listen(0, '127.0.0.1')
    await once(cable.#server, 'listening')
    return cable
  }

  get port(): number {
    const address = this.#server.address()
    if (address === null || typeof address === 'string') throw new Error('the cable is not laid')
    return address.port
  }

  #hold(from: Socket, to: Socket): void {
    this.#ends.add(from)
    if (this.#out) from.pause()
    from.on('data', (chunk: Buffer) => {
      this.#room -= chunk.length
      if (this.#room <= 0) this.#pause()
      if (to.write(chunk)) return
      from.pause()
      to.once('drain', () => {
        if (!this.#out) from.resume()
      })
    })
    from.on('end', () => to.end())
    from.on('error', () => to.destroy())
    from.on('close', () => {
      this.#ends.delete(from)
      to.destroy()
    })
  }

  /** Takes the cable out. What is connected stalls, and so does who connects. */
  cut(): void {
    this.#pause()
  }

  /** Stalls all by itself after so many bytes more, until it is let go. */
  stallAfter(bytes: number): void {
    this.#room = bytes
  }

  /** Goes on where it stalled. */
  letGo(): void {
    this.#room = Infinity
    this.#out = false
    for (const end of this.#ends) end.resume()
  }

  #pause(): void {
    this.#out = true
    for (const end of this.#ends) end.pause()
  }

  /** Puts the cable back. What stalled while it was out never moves again, as after a change of address. */
  mend(): void {
    this.#room = Infinity
    this.#out = false
    for (const end of this.#ends) end.destroy()
  }

  async close(): Promise<void> {
    for (const end of this.#ends) end.destroy()
    this.#server.close()
    await once(this.#server, 'close')
  }
}
