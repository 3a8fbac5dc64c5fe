// Command hello is all that the smallest test image holds. Without an argument it greets and ends; "exit N" ends with
// that code, "wait" waits for a signal, "eat MIB" holds that much memory until a signal comes.
package main

import (
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"syscall"
)

func main() {
	verb, number := "", 0
	if len(os.Args) > 1 {
		verb = os.Args[1]
	}
	if len(os.Args) > 2 {
		number, _ = strconv.Atoi(os.Args[2])
	}
	switch verb {
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
