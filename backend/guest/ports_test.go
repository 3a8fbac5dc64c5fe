//go:build linux

package guest

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestListenersOfTheLoopback(t *testing.T) {
	const table = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 1
   1: 00000000:0050 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 2
   2: 0B00007F:A6C5 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 3
   3: 020011AC:08AE 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4
   4: 0100007F:1F90 0100007F:C350 01 00000000:00000000 00:00000000 00000000  1000        0 5
   5: cut
`
	const table6 = `  sl  local_address                         remote_address                        st
   0: 00000000000000000000000000000000:1F91 00000000000000000000000000000000:0000 0A 0:0 00:0 0 1000 0 10
   1: 00000000000000000000000001000000:1F92 00000000000000000000000000000000:0000 0A 0:0 00:0 0 1000 0 11
   2: 0000000000000000FFFF00000100007F:1F93 00000000000000000000000000000000:0000 0A 0:0 00:0 0 1000 0 12
   3: 000080FE000000000000000001000000:1F94 00000000000000000000000000000000:0000 0A 0:0 00:0 0 1000 0 13
`
	for name, c := range map[string]struct {
		table string
		other string // inode of a socket that does not count
		want  []int
	}{
		"version 4: not of other addresses, not what is connected": {table, "", []int{8080, 80}},
		"version 6: also what takes version 4":                     {table6, "", []int{8081, 8082, 8083}},
		"nothing":                                                  {"", "", nil},
		"without those of others":                                  {table6, "11", []int{8081, 8083}},
	} {
		got := listeners(strings.NewReader(c.table), func(inode string) bool { return inode != c.other })
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func TestRangeOfPassingPorts(t *testing.T) {
	file := filepath.Join(t.TempDir(), "range")
	for text, want := range map[string][2]int{"1024\t2000\n": {1024, 2000}, "": {32768, 60999}, "a b": {32768, 60999}} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if first, last := passingPorts(file); [2]int{first, last} != want {
			t.Errorf("%q: %d to %d", text, first, last)
		}
	}
	if first, _ := passingPorts(file + ".not"); first != 32768 {
		t.Errorf("without the file: %d", first)
	}
}
