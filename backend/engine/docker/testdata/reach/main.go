// Reach is what the containers of a test try each other with.
//
//	reach serve PORT       answers on every address, and says which they are
//	reach dial ADDRESS 1s  says whether an address answers in time
package main

import (
	"fmt"
	"net"
	"os"
	"time"
)

func main() {
	var err error
	switch os.Args[1] {
	case "serve":
		err = serve(os.Args[2])
	case "dial":
		err = dial(os.Args[2], os.Args[3])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// serve prints its addresses, one a line, then an empty line.
func serve(port string) error {
	l, err := net.Listen("tcp", ":"+port)
	if err != nil {
		return err
	}
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return err
	}
	for _, a := range addresses {
		if ip, ok := a.(*net.IPNet); ok && !ip.IP.IsLoopback() {
			fmt.Println(ip.IP)
		}
	}
	fmt.Println()
	for {
		conn, err := l.Accept()
		if err != nil {
			return err
		}
		fmt.Fprint(conn, "hello")
		conn.Close()
	}
}

// dial waits only so long: a blocked connection gets no answer.
func dial(address, patience string) error {
	limit, err := time.ParseDuration(patience)
	if err != nil {
		return err
	}
	conn, err := net.DialTimeout("tcp", address, limit)
	if err != nil {
		fmt.Println("kept out")
		return nil
	}
	defer conn.Close()
	fmt.Println("reached")
	return nil
}
