package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"slipway/build/bench/measure"
)

// nginx is a proxy before model servers, without which it would fail requests: llama-server closes the connection of a
// stream without announcing it, so no connection is used again.
type nginx struct {
	base    string // of the API
	dir     string
	command *exec.Cmd
}

const nginxConfig = `daemon off;
user root;
worker_processes auto;
pid nginx.pid;
error_log stderr;
events { worker_connections 8192; }
http {
  access_log off;
  client_body_temp_path body;
  proxy_temp_path proxy;
  fastcgi_temp_path fastcgi;
  uwsgi_temp_path uwsgi;
  scgi_temp_path scgi;
  upstream replicas { least_conn; %s }
  server {
    listen %s;
    location / {
      proxy_pass http://replicas;
      proxy_http_version 1.1;
      proxy_set_header Connection close;
      proxy_buffering off;
    }
  }
}
`

// startNginx starts nginx before servers, by their addresses.
func startNginx(ctx context.Context, servers []string) *nginx {
	listener := measure.Get(net.Listen("tcp", "127.0.0.1:0")) // finds a free port
	address := listener.Addr().String()
	measure.OK(listener.Close())
	n := &nginx{base: "http://" + address + "/v1", dir: measure.Get(os.MkdirTemp("", "slipway-nginx-"))}
	var upstream strings.Builder
	for _, server := range servers {
		fmt.Fprintf(&upstream, "server %s; ", server)
	}
	config := filepath.Join(n.dir, "nginx.conf")
	measure.OK(os.WriteFile(config, fmt.Appendf(nil, nginxConfig, upstream.String(), address), 0o600))
	n.command = exec.CommandContext(ctx, "nginx", "-p", n.dir, "-c", config)
	n.command.Env = append(os.Environ(), "PATH="+os.Getenv("PATH")+":/usr/sbin")
	if n.command.Path == "nginx" {
		n.command.Path, n.command.Err = "/usr/sbin/nginx", nil // where PATH lacks it
	}
	n.command.Stderr = os.Stderr
	n.command.Cancel = func() error { return n.command.Process.Signal(syscall.SIGTERM) }
	measure.OK(n.command.Start())
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			measure.OK(conn.Close())
			return n
		}
		if time.Now().After(end) {
			measure.Fail("nginx does not answer: %w", err)
		}
	}
}

// processes are the ids of the proxy and its workers.
func (n *nginx) processes() []int {
	return append(children(n.command.Process.Pid), n.command.Process.Pid)
}

func (n *nginx) stop() {
	measure.OK(n.command.Process.Signal(syscall.SIGTERM))
	err := n.command.Wait()
	if _, exited := errors.AsType[*exec.ExitError](err); !exited {
		measure.OK(err)
	}
	measure.OK(os.RemoveAll(n.dir))
}

// children are the processes that a process started.
func children(pid int) (list []int) {
	text := measure.Get(os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid)))
	for _, word := range strings.Fields(string(text)) {
		list = append(list, measure.Get(strconv.Atoi(word)))
	}
	return list
}

// cpuOf is the time of processors that processes have taken so far.
func cpuOf(pids []int) (sum time.Duration) {
	const tick = 10 * time.Millisecond // USER_HZ of every Linux is 100
	for _, pid := range pids {
		sum += time.Duration(measure.Get(ticks(pid))) * tick
	}
	return sum
}

// ticks reads the user and system time of a process.
func ticks(pid int) (int64, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(data[strings.LastIndexByte(string(data), ')')+1:]))
	user, err := strconv.ParseInt(fields[11], 10, 64)
	if err != nil {
		return 0, err
	}
	system, err := strconv.ParseInt(fields[12], 10, 64)
	return user + system, err
}

// guests are the processes of the guests in the containers of a service.
func (s *served) guests() (pids []int) {
	for _, r := range s.now().Live {
		for line := range strings.Lines(s.dockerSays("top", container(s.session(r)), "-o", "pid,args")) {
			if pid, args, _ := strings.Cut(strings.TrimSpace(line), " "); strings.Contains(args, "/.slipway/guest") {
				pids = append(pids, measure.Get(strconv.Atoi(pid)))
			}
		}
	}
	return pids
}

// fetch returns the body of a page.
func fetch(ctx context.Context, address string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return "", err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	return string(text), err
}
