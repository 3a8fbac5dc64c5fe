package recipe

import (
	"fmt"
	"strconv"
	"strings"
)

// maxPortRange bounds a range, so that a slip of the keyboard is told as one.
const maxPortRange = 64

const portHint = "Write ports from 1 to 65535, or ranges such as 9000:9003."

// ParsePorts reads a port or a range a:b.
func ParsePorts(text string) ([]int, error) {
	from, to, ranged := strings.Cut(text, ":")
	first, err := strconv.Atoi(from)
	if err != nil {
		return nil, err
	}
	last := first
	if ranged {
		if last, err = strconv.Atoi(to); err != nil {
			return nil, err
		}
	}
	if first < 1 || last > 65535 || last < first || last-first >= maxPortRange {
		return nil, fmt.Errorf("no range of ports: %s", text)
	}
	var ports []int
	for port := first; port <= last; port++ {
		ports = append(ports, port)
	}
	return ports, nil
}
