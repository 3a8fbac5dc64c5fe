package secure

import (
	"io"
	"testing"
)

// BenchmarkCarrier measures what one direction of a carrier carries.
func BenchmarkCarrier(b *testing.B) {
	for _, web := range []bool{false, true} {
		b.Run(map[bool]string{false: "tls", true: "wss"}[web], func(b *testing.B) {
			a, laptop := startAgent(b, nil), newIdentity(b)
			a.pairWith(b, laptop)
			conn, carrier := a.connect(b, a.dialer(b, laptop, func(c *DialConfig) { c.Address = a.address(web) }))
			buffer := make([]byte, 32<<10)
			go func() {
				for {
					if _, err := conn.Write(buffer); err != nil {
						return
					}
				}
			}()
			b.SetBytes(int64(len(buffer)))
			got := make([]byte, len(buffer))
			for b.Loop() {
				if _, err := io.ReadFull(carrier, got); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkHandshake measures a new carrier until its first byte.
func BenchmarkHandshake(b *testing.B) {
	a, laptop := startAgent(b, nil), newIdentity(b)
	a.pairWith(b, laptop)
	d := a.dialer(b, laptop, nil)
	for b.Loop() {
		conn, err := d.Dial(b.Context(), true)
		if err != nil {
			b.Fatal(err)
		}
		carrier, err := a.Accept()
		if err != nil {
			b.Fatal(err)
		}
		_ = carrier.Close()
		_ = conn.Close()
	}
}
