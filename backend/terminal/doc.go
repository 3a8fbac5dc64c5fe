// Package terminal runs shells that outlive their viewers.
//
// A [Spool] keeps the output of one shell under byte offsets that never change, up to a cap. A viewer attaches at the
// offset that it has reached and receives every byte from there, or a gap with the range of bytes that were dropped.
// Viewers are independent: one that stalls delays only itself, and never the shell.
//
// # Attach protocol
//
// Frames in both directions: one type byte, a big-endian uint32 length of the payload, the payload. Over a WebSocket
// each binary message is one frame without the length. All numbers are big-endian.
//
//	to the viewer
//	  'H' hello   uint64 start of spool, uint64 end of spool, uint64 offset of the next data byte, uint64 input bytes
//	              accepted from this client so far, uint16 cols, uint16 rows
//	  'D' data    uint64 offset of the first byte, then at most 32 KiB of output
//	  'G' gap     uint64 from, uint64 to: these bytes are gone; data continues at to, maybe after 'M'
//	  'M' modes   escape sequences that restore the screen's modes (alternate screen, bracketed paste, mouse, cursor,
//	              keypad) where data begins, unless at 0; no offset. They are for an empty screen: a viewer that has
//	              shown everything before ignores them
//	  'K' ack     uint64 input bytes accepted from this client so far
//	  'Z' size    uint16 cols, uint16 rows: the shell's size changed
//	  'X' exit    int32 exit code; the last frame, after all data
//	to the shell
//	  'I' input   uint64 offset of the first byte in this client's input, bytes. Bytes below the accepted offset are
//	              dropped, so a client may send them again after a reconnection. At most 512 KiB are sent beyond it
//	  'A' ack     uint64 output offset that the viewer has shown. At most 512 KiB are sent beyond it, so it is due at
//	              least every 256 KiB
//	  'R' resize  uint16 cols, uint16 rows
//
// # Exec protocol
//
// The same frames. To the caller: 'D' and 'E' are stdout and stderr without an offset, 'X' the exit code, 'K' the stdin
// bytes read by the command so far. To the command: 'I' is stdin without an offset, 'C' closes stdin, 'S' one byte, the
// number of a signal. Output is limited by the stream's own backpressure. A caller sends at most 4 MiB of stdin beyond
// the last 'K'; if it sends more, its frames wait, including signals.
package terminal
