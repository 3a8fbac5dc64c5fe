// Package terminal holds shells that outlive whoever looks at them.
//
// A [Spool] keeps the output of one shell under byte offsets that never move, up to a cap. A viewer attaches from the
// offset it has reached and receives every byte from there, or a gap that says exactly which bytes the cap has dropped.
// Viewers are independent: one that stalls delays only itself, and the shell never waits for any of them.
//
// # Attach protocol
//
// Both directions carry frames: one type byte, a big-endian uint32 length of the payload, the payload. Over a WebSocket
// each binary message is one frame without the length. All numbers are big-endian.
//
//	to the viewer
//	  'H' hello   uint64 start of spool, uint64 end of spool, uint64 offset of the
//	              next data byte, uint64 input bytes accepted from this client
//	              so far, uint16 cols, uint16 rows
//	  'D' data    uint64 offset of the first byte, then at most 32 KiB of output
//	  'G' gap     uint64 from, uint64 to: these bytes are gone; data goes on at to.
//	              A preamble for the screen's modes may follow as data 'M'
//	  'M' modes   escape sequences that restore the modes in force (alternate
//	              screen, bracketed paste, mouse, cursor, keypad) at the offset where
//	              data begins, when that offset is not 0; they have no offset. They
//	              are for an empty screen: a viewer that has shown everything
//	              before that offset passes over them
//	  'K' ack     uint64 input bytes accepted from this client so far
//	  'Z' size    uint16 cols, uint16 rows: the shell's size changed
//	  'X' exit    int32 exit code; the last frame after all data
//	to the shell
//	  'I' input   uint64 offset of the first byte in this client's input, bytes.
//	              Bytes below the accepted offset are dropped: a client sends
//	              again after a reconnection and nothing is doubled. At most
//	              512 KiB are sent beyond what was accepted
//	  'A' ack     uint64 output offset that the viewer has shown. At most 512 KiB
//	              are sent beyond it, so it is due at least every 256 KiB
//	  'R' resize  uint16 cols, uint16 rows
//
// # Exec protocol
//
// The same frames. To the caller: 'D' and 'E' carry stdout and stderr without an offset, 'X' the exit code, 'K' the
// stdin bytes taken by the command so far. To the command: 'I' carries stdin without an offset, 'C' closes stdin, 'S'
// one byte, the number of a signal. Backpressure of output is the stream's own. A caller sends at most 512 KiB of stdin
// beyond the last 'K'; one that sends more is held up, and with it its signals.
package terminal
