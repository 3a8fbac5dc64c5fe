package networks

import (
	"os"
	"testing"
)

func TestDaemonThatLeavesThePacketFilterAloneIsKnown(t *testing.T) {
	files := map[string]string{
		"/etc/docker/daemon.json": `{"iptables": false, "live-restore": true}`,
		"/opt/on.json":            `{"iptables": true}`,
		"/opt/none.json":          `{"live-restore": true}`,
		"/opt/broken.json":        `{"iptables": false`,
	}
	read := func(path string) ([]byte, error) {
		if text, there := files[path]; there {
			return []byte(text), nil
		}
		return nil, os.ErrNotExist
	}
	for _, c := range []struct {
		args []string
		want bool
	}{
		{[]string{"/usr/bin/dockerd", "-H", "fd://"}, true},
		{[]string{"/usr/bin/dockerd", "--iptables=false"}, true},
		{[]string{"dockerd", "--iptables=0", "--config-file", "/opt/none.json"}, true},
		{[]string{"dockerd", "--iptables", "--config-file=/opt/none.json"}, false},
		{[]string{"dockerd", "--iptables=true"}, false},
		{[]string{"dockerd", "--config-file=/opt/on.json"}, false},
		{[]string{"dockerd", "--config-file", "/opt/none.json"}, false},
		{[]string{"dockerd", "--config-file", "/opt/broken.json"}, false},
		{[]string{"dockerd", "--config-file", "/opt/missing.json"}, false},
		{[]string{"/usr/bin/containerd"}, false},
		{nil, false},
	} {
		if got := leavesFilter(c.args, read); got != c.want {
			t.Errorf("%q: %t", c.args, got)
		}
	}
}
