package nvml

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
)

// ChildCommand is the hidden command of a program with C linkage that runs the child: its arguments go to [ChildMain].
const ChildCommand = "gpu-agent"

const boxDescriptor = 3

// ChildMain is the program of the child. It returns the exit code.
func ChildMain(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet(ChildCommand, flag.ContinueOnError)
	flags.SetOutput(stderr)
	library := flags.String("library", "", "the driver's library")
	box := flags.Bool("box", false, "note each call in descriptor 3")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	var notes *os.File
	if *box {
		notes = os.NewFile(boxDescriptor, "box")
	}
	if err := runChild(stdin, stdout, func() driver { return openDriver(*library, notes) }); err != nil {
		fmt.Fprintln(stderr, err)
		return 1
	}
	return 0
}

type driver interface {
	inventory(omit []omission) ([]deviceFacts, []loss, *fault)
	sample(r request) (*reading, []loss, *fault)
}

// runChild answers requests until stdin ends, which is how the parent ends it. It then returns at once, even while a
// call hangs in the driver; the caller must end the process. The library is loaded by the first request.
func runChild(stdin io.Reader, stdout io.Writer, open func() driver) error {
	requests, ended := make(chan request), make(chan error, 2)
	go func() {
		for next := messages(stdin); ; {
			var r request
			if err := next(&r); err != nil {
				ended <- err
				return
			}
			requests <- r
		}
	}()
	go func() {
		d, answers := open(), json.NewEncoder(stdout)
		for r := range requests {
			if err := answers.Encode(serve(d, r)); err != nil {
				ended <- err
				return
			}
		}
	}()
	if err := <-ended; !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

func serve(d driver, r request) answer {
	a := answer{ID: r.ID}
	switch r.Op {
	case opInventory:
		a.Inventory, a.Lost, a.Fault = d.inventory(r.Omit)
	case opSample:
		a.Reading, a.Lost, a.Fault = d.sample(r)
	}
	return a
}
