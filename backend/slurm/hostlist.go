package slurm

import (
	"fmt"
	"strconv"
	"strings"
)

// The most that one list of nodes may have.
const (
	maxHosts = 1 << 16
	maxList  = 64 << 10 // bytes
)

// expandHosts returns the names in a list of nodes such as n[1-3,07-09],gpu-a[01-02], in its order. A list that names
// more than 65,536 nodes, or that Slurm would not write, fails.
func expandHosts(list string) (names []string, err error) {
	if list = strings.TrimSpace(list); word(list) == "" {
		return nil, nil
	}
	if len(list) > maxList || strings.ContainsFunc(list, foreign) {
		return nil, fmt.Errorf("%.40q is not a list of nodes", list)
	}
	for part := range splitOutside(list, '[', ']') {
		names, err = appendHosts(names, "", part)
		if err != nil {
			return nil, fmt.Errorf("%.40q is not a list of nodes: %w", list, err)
		}
	}
	return names, nil
}

// appendHosts appends the names that begin with prefix and go on as text says.
func appendHosts(names []string, prefix, text string) ([]string, error) {
	plain, rest, found := strings.Cut(text, "[")
	if strings.ContainsAny(plain, "] ") || prefix+text == "" {
		return nil, fmt.Errorf("unexpected character in %q", text)
	}
	if !found {
		if len(names) == maxHosts {
			return nil, fmt.Errorf("more than %d nodes", maxHosts)
		}
		return append(names, prefix+plain), nil
	}
	ranges, rest, found := strings.Cut(rest, "]")
	if !found || len(prefix)+len(plain) > maxName {
		return nil, fmt.Errorf("unexpected end of %q", text)
	}
	for item := range strings.SplitSeq(ranges, ",") {
		first, last, width, err := hostRange(item)
		if err != nil {
			return nil, err
		}
		for n := first; n <= last; n++ {
			if names, err = appendHosts(names, fmt.Sprintf("%s%s%0*d", prefix, plain, width, n), rest); err != nil {
				return nil, err
			}
		}
	}
	return names, nil
}

// hostRange reads 7 or 07-09. width is the number of digits, with zeros before.
func hostRange(item string) (first, last uint64, width int, err error) {
	from, to, ranged := strings.Cut(item, "-")
	if !ranged {
		to = from
	}
	first, err = strconv.ParseUint(from, 10, 48)
	if err != nil {
		return 0, 0, 0, err
	}
	last, err = strconv.ParseUint(to, 10, 48)
	if err != nil {
		return 0, 0, 0, err
	}
	if last < first || last-first >= maxHosts || len(from) > 32 {
		return 0, 0, 0, fmt.Errorf("%q is not a range of at most %d nodes", item, maxHosts)
	}
	return first, last, len(from), nil
}

// splitOutside splits text at commas that are not between an opening and a closing character.
func splitOutside(text string, opening, closing byte) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		depth, from := 0, 0
		for i := range len(text) {
			switch text[i] {
			case opening:
				depth++
			case closing:
				depth--
			case ',':
				if depth == 0 {
					if !yield(text[from:i]) {
						return
					}
					from = i + 1
				}
			}
		}
		yield(text[from:])
	}
}

// expandNumbers returns the numbers in a list such as 0-1,4. A list of more than 65,536 numbers, or of anything else,
// is nil.
func expandNumbers(list string) (numbers []int) {
	for item := range strings.SplitSeq(list, ",") {
		first, last, _, err := hostRange(item)
		if err != nil || last >= maxHosts || len(numbers) > maxHosts {
			return nil
		}
		for n := first; n <= last; n++ {
			numbers = append(numbers, int(n))
		}
	}
	return numbers
}
