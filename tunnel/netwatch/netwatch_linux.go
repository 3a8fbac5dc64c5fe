package netwatch

import (
	"context"
	"encoding/binary"
	"fmt"
	"net/netip"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// listen calls notice whenever the kernel reports a change of addresses, routes or interfaces.
func listen(ctx context.Context, notice func()) error {
	socket, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.NETLINK_ROUTE)
	if err != nil {
		return fmt.Errorf("netwatch: open netlink: %w", err)
	}
	file := os.NewFile(uintptr(socket), "netlink")
	defer file.Close()
	groups := uint32(unix.RTMGRP_LINK | unix.RTMGRP_IPV4_IFADDR | unix.RTMGRP_IPV6_IFADDR | unix.RTMGRP_IPV4_ROUTE |
		unix.RTMGRP_IPV6_ROUTE)
	if err := unix.Bind(socket, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: groups}); err != nil {
		return fmt.Errorf("netwatch: bind netlink: %w", err)
	}
	return hear(ctx, file, "netlink", notice)
}

// routes describes the main table's routes through the given interfaces.
func routes(wanted map[int]string) ([]string, error) {
	raw, err := syscall.NetlinkRIB(syscall.RTM_GETROUTE, syscall.AF_UNSPEC)
	if err != nil {
		return nil, fmt.Errorf("netwatch: list routes: %w", err)
	}
	messages, err := syscall.ParseNetlinkMessage(raw)
	if err != nil {
		return nil, fmt.Errorf("netwatch: parse routes: %w", err)
	}
	var lines []string
	for i := range messages {
		if line, ok := routeLine(&messages[i], wanted); ok {
			lines = append(lines, line)
		}
	}
	return lines, nil
}

// Offsets in struct rtmsg of rtnetlink(7).
const (
	routeBits  = 1
	routeTable = 4
	routeType  = 7
	routeSize  = 12
)

// routeLine describes one unicast route of the main table.
func routeLine(m *syscall.NetlinkMessage, wanted map[int]string) (string, bool) {
	if m.Header.Type != syscall.RTM_NEWROUTE || len(m.Data) < routeSize ||
		m.Data[routeTable] != unix.RT_TABLE_MAIN || m.Data[routeType] != unix.RTN_UNICAST {
		return "", false
	}
	attributes, err := syscall.ParseNetlinkRouteAttr(m)
	if err != nil {
		return "", false
	}
	name, to, via := "", netip.Addr{}, netip.Addr{}
	for _, a := range attributes {
		switch a.Attr.Type {
		case syscall.RTA_OIF:
			if len(a.Value) >= 4 {
				name = wanted[int(binary.NativeEndian.Uint32(a.Value))]
			}
		case syscall.RTA_DST:
			to, _ = netip.AddrFromSlice(a.Value)
		case syscall.RTA_GATEWAY:
			via, _ = netip.AddrFromSlice(a.Value)
		}
	}
	if name == "" || to.IsLinkLocalUnicast() || to.IsMulticast() {
		return "", false
	}
	return fmt.Sprintf("%s route %s/%d via %s", name, to, m.Data[routeBits], via), true
}
