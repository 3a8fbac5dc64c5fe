package guest

import (
	"fmt"
	"os"
	"path/filepath"
)

// Main is the program of the guest: init, worker, spawn, files, sftp or ssh, by its first
// argument, or ssh by its own name. It returns the exit code.
func Main(args []string) int {
	if filepath.Base(os.Args[0]) == "ssh" { // by the link that stands in for it
		return sshMain(args)
	}
	if len(args) > 0 {
		switch args[0] {
		case "init":
			return initialise()
		case "worker":
			return work()
		case "spawn":
			return spawn(args[1:])
		case "files":
			return filesMain(args[1:])
		case "ssh":
			return sshMain(args[1:])
		case "sftp":
			return sftpMain()
		case "ssh-setup":
			return setupMain()
		}
	}
	fmt.Fprintln(os.Stderr,
		"slipway-guest runs inside the containers of Slipway: init | worker | spawn | files | sftp | ssh")
	return 2
}
