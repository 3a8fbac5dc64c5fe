package guest

import (
	"bufio"
	"io"
	"slices"
	"strconv"
	"strings"
)

// stateListen is how the kernel's tables of sockets write that one takes connections.
const stateListen = "0A"

// Listening reads the tables of the container's own network.
func (c *container) Listening() []int {
	first, last := passingPorts("/proc/sys/net/ipv4/ip_local_port_range")
	var ports []int
	for _, table := range [...]string{"/proc/net/tcp", "/proc/net/tcp6"} {
		file, err := openKernel(table)
		if err != nil {
			continue // a kernel without that protocol
		}
		for _, port := range listeners(file) {
			if port < first || port > last {
				ports = append(ports, port)
			}
		}
		_ = file.Close()
	}
	slices.Sort(ports)
	return slices.Compact(ports)
}

// listeners returns the ports in a table of sockets that a caller on the loopback reaches. Docker's own name server
// listens beside it, on 127.0.0.11.
func listeners(table io.Reader) []int {
	var ports []int
	lines := bufio.NewScanner(table)
	for lines.Scan() {
		// sl local_address rem_address st …
		fields := strings.Fields(lines.Text())
		if len(fields) < 4 || fields[3] != stateListen {
			continue
		}
		address, port, _ := strings.Cut(fields[1], ":")
		number, err := strconv.ParseUint(port, 16, 16)
		if err == nil && number > 0 && onLoopback(address) {
			ports = append(ports, int(number))
		}
	}
	return ports
}

// onLoopback reports whether an address, in the kernel's own order of bytes, is 127.0.0.1, ::1, or every address.
func onLoopback(address string) bool {
	switch address {
	case "00000000", "00000000000000000000000000000000", "00000000000000000000000001000000",
		"0100007F", "0000000000000000FFFF00000100007F", "0000000000000000FFFF000000000000":
		return true
	}
	return false
}

// passingPorts reads the range from which the kernel gives a port to whoever does not care which. Programs that talk to
// themselves take those, such as a notebook's kernels; nobody opens them by their number.
func passingPorts(path string) (first, last int) {
	first, last = 32768, 60999
	data, err := kernelFile(path, maxKernelText)
	if err != nil {
		return first, last
	}
	fields := strings.Fields(string(data))
	if len(fields) != 2 {
		return first, last
	}
	from, errFrom := strconv.Atoi(fields[0])
	to, errTo := strconv.Atoi(fields[1])
	if errFrom != nil || errTo != nil {
		return first, last
	}
	return from, to
}
