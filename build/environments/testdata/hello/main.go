// Command hello is the only file of the smallest test image. Without an argument it greets and ends; "exit N" ends with
// that code, "wait" waits for a signal, "eat MIB" uses that much memory until a signal.
package main

import (
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"syscall"
)

func main() {
	args := append(os.Args[1:], "", "")
	number, _ := strconv.Atoi(args[1])
	switch args[0] {
	case "exit":
		os.Exit(number)
	case "wait":
		wait()
	case "eat":
		eaten := make([]byte, number<<20)
		for i := range eaten {
			eaten[i] = 1
		}
		wait()
		os.Exit(int(eaten[0]) - 1)
	default:
		fmt.Println("hello")
	}
}

func wait() {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	<-signals
}
