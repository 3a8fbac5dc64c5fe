// Command guest replaces the real guest in tests of the engine. It runs the startup command with /bin/sh, dials the
// agent's socket again and again, and echoes what arrives.
package main

import (
	"encoding/json"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	var config struct {
		Command string
		Env     []struct{ Name, Value string }
	}
	data, err := os.ReadFile("/.slipway/config.json")
	if err != nil || json.Unmarshal(data, &config) != nil {
		os.Exit(99)
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM)
	if len(config.Env) == 0 || config.Env[len(config.Env)-1].Name != "GUEST_MUTE" {
		go dial()
	}
	if config.Command == "" {
		<-signals
		os.Exit(143)
	}
	cmd := exec.Command("/bin/sh", "-c", config.Command)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Start(); err != nil {
		os.Exit(127)
	}
	go func() {
		<-signals
		os.Exit(143)
	}()
	if err := cmd.Wait(); err != nil && cmd.ProcessState.ExitCode() < 0 {
		os.Exit(137)
	}
	os.Exit(cmd.ProcessState.ExitCode())
}

func dial() {
	// GUEST_MUTE as the last variable keeps it from dialling.
	for ; ; time.Sleep(50 * time.Millisecond) {
		conn, err := net.Dial("unix", "/.slipway/link/agent.sock")
		if err != nil {
			continue
		}
		io.Copy(conn, conn)
		conn.Close()
	}
}
