/**
 * The attach protocol as it travels over a WebSocket: each binary message is
 * one type byte and its payload, all numbers big-endian. See package terminal
 * of the control plane, which defines it.
 */
export type ServerFrame =
  | { kind: 'hello'; start: number; end: number; offset: number; accepted: number; cols: number; rows: number }
  | { kind: 'data'; offset: number; bytes: Uint8Array }
  | { kind: 'gap'; from: number; to: number }
  | { kind: 'modes'; bytes: Uint8Array }
  | { kind: 'ack'; accepted: number }
  | { kind: 'size'; cols: number; rows: number }
  | { kind: 'exit'; code: number }

/** Thrown when a message is not a frame of the protocol. */
export class FrameError extends Error {}

const HEADER = 1
const U64 = 8

/** Reads one message of the server. Offsets fit a double: 2^53 bytes are 8 PiB. */
export function decodeFrame(message: ArrayBuffer): ServerFrame {
  const view = new DataView(message)
  if (view.byteLength === 0) throw new FrameError('empty frame')
  const type = String.fromCharCode(view.getUint8(0))
  const size = view.byteLength - HEADER
  const need = (bytes: number) => {
    if (size < bytes) throw new FrameError(`frame ${type} is ${size} bytes long, too short`)
  }
  const u64 = (at: number) => Number(view.getBigUint64(HEADER + at))
  switch (type) {
    case 'H':
      need(4 * U64 + 4)
      return {
        kind: 'hello',
        start: u64(0),
        end: u64(U64),
        offset: u64(2 * U64),
        accepted: u64(3 * U64),
        cols: view.getUint16(HEADER + 4 * U64),
        rows: view.getUint16(HEADER + 4 * U64 + 2),
      }
    case 'D':
      need(U64)
      return { kind: 'data', offset: u64(0), bytes: new Uint8Array(message, HEADER + U64) }
    case 'G':
      need(2 * U64)
      return { kind: 'gap', from: u64(0), to: u64(U64) }
    case 'M':
      return { kind: 'modes', bytes: new Uint8Array(message, HEADER) }
    case 'K':
      need(U64)
      return { kind: 'ack', accepted: u64(0) }
    case 'Z':
      need(4)
      return { kind: 'size', cols: view.getUint16(HEADER), rows: view.getUint16(HEADER + 2) }
    case 'X':
      need(4)
      return { kind: 'exit', code: view.getInt32(HEADER) }
    default:
      throw new FrameError(`unknown frame type ${type}`)
  }
}

function frame(type: string, size: number): DataView<ArrayBuffer> {
  const view = new DataView(new ArrayBuffer(HEADER + size))
  view.setUint8(0, type.charCodeAt(0))
  return view
}

/** Input bytes that begin at offset of what this viewer has typed. */
export function encodeInput(offset: number, bytes: Uint8Array): ArrayBuffer {
  const view = frame('I', U64 + bytes.length)
  view.setBigUint64(HEADER, BigInt(offset))
  new Uint8Array(view.buffer, HEADER + U64).set(bytes)
  return view.buffer
}

/** Says that everything below offset is on the screen. */
export function encodeAck(offset: number): ArrayBuffer {
  const view = frame('A', U64)
  view.setBigUint64(HEADER, BigInt(offset))
  return view.buffer
}

/** Asks for another size of the shell's screen. */
export function encodeResize(cols: number, rows: number): ArrayBuffer {
  const view = frame('R', 4)
  view.setUint16(HEADER, cols)
  view.setUint16(HEADER + 2, rows)
  return view.buffer
}
