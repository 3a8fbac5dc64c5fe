/** Input bytes are sent in pieces of at most this size. */
const INPUT_PIECE = 16 * 1024

/** At most this many input bytes are under way without an acknowledgement. */
const INPUT_WINDOW = 256 * 1024

/**
 * What a person has typed and the shell has not acknowledged yet. Every byte
 * has an offset that never changes, so that after a cut exactly those bytes are
 * sent again that did not arrive.
 */
export class Outbox {
  #acknowledged = 0
  #sent = 0
  #pieces: Uint8Array[] = []
  #known = false

  /** Bytes that wait for an acknowledgement. */
  get size(): number {
    return this.#pieces.reduce((sum, piece) => sum + piece.length, 0)
  }

  add(bytes: Uint8Array): void {
    for (let at = 0; at < bytes.length; at += INPUT_PIECE) this.#pieces.push(bytes.slice(at, at + INPUT_PIECE))
  }

  /**
   * Begins anew on a fresh connection whose hello says how many bytes of this
   * viewer the shell has accepted. A shell that knows less than it once
   * acknowledged has forgotten this viewer; counting goes on from what it knows.
   */
  resume(accepted: number): void {
    if (!this.#known || accepted < this.#acknowledged) this.#acknowledged = accepted
    this.#known = true
    this.acknowledge(accepted)
    this.#sent = this.#acknowledged
  }

  /** Forgets what has arrived. */
  acknowledge(accepted: number): void {
    while (accepted > this.#acknowledged) {
      const first = this.#pieces[0]
      if (!first) {
        this.#acknowledged = accepted
        break
      }
      const arrived = Math.min(first.length, accepted - this.#acknowledged)
      if (arrived === first.length) this.#pieces.shift()
      else this.#pieces[0] = first.subarray(arrived)
      this.#acknowledged += arrived
    }
    this.#sent = Math.max(this.#sent, this.#acknowledged)
  }

  /** The next piece that may be sent now, with its offset; it counts as sent. Nothing when all is under way. */
  next(): { offset: number; bytes: Uint8Array } | null {
    let offset = this.#acknowledged
    for (const bytes of this.#pieces) {
      const end = offset + bytes.length
      if (end > this.#sent) {
        if (end - this.#acknowledged > INPUT_WINDOW) return null
        const from = Math.max(offset, this.#sent)
        this.#sent = end
        return { offset: from, bytes: bytes.subarray(from - offset) }
      }
      offset = end
    }
    return null
  }
}
