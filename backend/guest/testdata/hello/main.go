//go:build linux

// Command hello is the only program of an image that holds nothing else. It is made for the tests of package guest.
package main

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"syscall"
	"time"
)

func main() {
	args := append(os.Args[1:], "", "", "")
	switch args[0] {
	case "serve": // serve PORT STATUS: answer every connection with that status
		serve(args[1], args[2])
	case "fail": // fail CODE: print three lines and exit
		fmt.Println("one\ntwo")
		fmt.Fprintln(os.Stderr, "cannot read the settings")
		code, _ := strconv.Atoi(args[1])
		os.Exit(code)
	case "hang":
		fmt.Println("still thinking")
		time.Sleep(time.Hour)
	case "eat": // use memory until the kernel objects, or has let 512 MiB pass
		for range 16 {
			block, err := syscall.Mmap(-1, 0, 32<<20, syscall.PROT_READ|syscall.PROT_WRITE,
				syscall.MAP_ANON|syscall.MAP_PRIVATE)
			if err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			for i := 0; i < len(block); i += os.Getpagesize() {
				block[i] = 1
			}
		}
	default:
		fmt.Println("hello from a static program", os.Getuid())
	}
}

func serve(port, status string) {
	listener, err := net.Listen("tcp", "127.0.0.1:"+port)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		go func() {
			defer conn.Close()
			_, _ = conn.Read(make([]byte, 4096))
			fmt.Fprintf(conn, "HTTP/1.1 %s x\r\nContent-Length: 3\r\nConnection: close\r\n\r\nyes", status)
		}()
	}
}
