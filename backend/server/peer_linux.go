package server

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
)

// lookups is how often the tables are read before a connection counts as without an owner: a line may be skipped while
// others are added and removed.
const lookups = 3

// ownerOf returns the user id of the local process whose end of a connection is from, the other end being to. It is
// unknown if the tables do not even have our own end. It is [noOwner] if the process has closed its end.
func ownerOf(from, to netip.AddrPort) (uid int, known bool) {
	for range lookups {
		ownSeen := false
		for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
			owner, found, own := searchTable(table, from, to)
			if found {
				return owner, true
			}
			ownSeen = ownSeen || own
		}
		if !ownSeen {
			return 0, false
		}
	}
	return noOwner, true
}

// searchTable looks for the connection from→to in a table of the kernel, and for our own end, to→from.
func searchTable(path string, from, to netip.AddrPort) (owner int, found, own bool) {
	file, err := os.Open(path)
	if err != nil {
		return 0, false, false
	}
	defer file.Close()
	fromTexts, toTexts := tableTexts(from), tableTexts(to)
	scanner := bufio.NewScanner(file)
	for scanner.Scan() {
		// sl local_address rem_address st queues timer retransmits uid timeout inode …
		fields := strings.Fields(scanner.Text())
		if len(fields) < 10 {
			continue
		}
		switch local, remote := fields[1], fields[2]; {
		case slices.Contains(fromTexts, local) && slices.Contains(toTexts, remote):
			uid, err := strconv.Atoi(fields[7])
			if err != nil || fields[9] == "0" { // no process holds it
				return noOwner, true, own
			}
			return uid, true, own
		case slices.Contains(toTexts, local) && slices.Contains(fromTexts, remote):
			own = true
		}
	}
	return 0, false, own
}

// tableTexts formats an IPv4 address as the tables do: words in the machine's byte order in hexadecimal, also as an
// IPv4-mapped IPv6 address.
func tableTexts(a netip.AddrPort) []string {
	b := a.Addr().Unmap().As4()
	slices.Reverse(b[:])
	word := strings.ToUpper(hex.EncodeToString(b[:]))
	port := fmt.Sprintf(":%04X", a.Port())
	return []string{word + port, "0000000000000000FFFF0000" + word + port}
}
