package lend

import (
	"context"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// dialWithin is how long a connection may take to be made.
const dialWithin = 30 * time.Second

// Outward connects to an address that is not of this computer, whatever name it has.
func Outward(ctx context.Context, network, address string) (net.Conn, error) {
	dialer := &net.Dialer{Timeout: dialWithin, Control: func(_, found string, _ syscall.RawConn) error {
		at, err := netip.ParseAddrPort(found)
		if err != nil {
			return err
		}
		return outside(at.Addr())
	}}
	return dialer.DialContext(ctx, network, address)
}

// insideError is that of an address which belongs to this computer.
type insideError struct{ address string }

func (e *insideError) Error() string {
	return e.address + " belongs to the computer that lends its connection, and builds do not reach that."
}

// outside fails if an address leads to this computer, to its containers, or to what is linked to it without a router.
func outside(at netip.Addr) error {
	at = at.Unmap().WithZone("")
	inside := &insideError{at.String()}
	if at.IsLoopback() || at.IsUnspecified() || at.IsMulticast() || at.IsLinkLocalUnicast() {
		return inside
	}
	interfaces, err := net.Interfaces()
	if err != nil {
		return err
	}
	for _, one := range interfaces {
		addresses, err := one.Addrs()
		if err != nil {
			return err
		}
		// On Linux, containers and virtual machines of this computer are behind bridges.
		_, noBridge := os.Stat(filepath.Join("/sys/class/net", one.Name, "bridge"))
		for _, address := range addresses {
			own, ok := address.(*net.IPNet)
			if ok && (own.IP.Equal(at.AsSlice()) || noBridge == nil && own.Contains(at.AsSlice())) {
				return inside
			}
		}
	}
	return nil
}

// outsideName is outside for the host of an address, as far as it is not the name of another.
func outsideName(host string) error {
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	if at, err := netip.ParseAddr(host); err == nil {
		return outside(at)
	}
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return &insideError{host}
	}
	return nil
}
