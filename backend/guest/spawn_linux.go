package guest

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"slipway/backend/files"
	"slipway/backend/session"
)

// statusFD is where spawn writes why it failed. A successful exec closes it.
const statusFD = 3

// childScore is added to oom_score_adj, so that the kernel kills programs rather than the guest when memory runs out.
const childScore = 300

// adminCapabilities are those of programs in an administrator session: what package managers need, and a part of what
// Docker leaves to root. SETPCAP is not among them, by which the agent tells the guest from such a program.
const adminCapabilities uint32 = 1<<unix.CAP_CHOWN | 1<<unix.CAP_DAC_OVERRIDE | 1<<unix.CAP_FOWNER |
	1<<unix.CAP_FSETID | 1<<unix.CAP_KILL | 1<<unix.CAP_SETGID | 1<<unix.CAP_SETUID

// spawn UID GID[,GROUP…] DIR PROGRAM ARG…: become that user without any capability and execute the program.
func spawn(args []string) int { return spawnWith(0, args) }

// spawnAdmin is spawn with the capabilities of administrators.
func spawnAdmin(args []string) int { return spawnWith(adminCapabilities, args) }

func spawnWith(capabilities uint32, args []string) int {
	runtime.LockOSThread() // privileges belong to a thread; this one becomes the program
	unix.CloseOnExec(statusFD)
	err := become(capabilities, args)
	failure, known := errors.AsType[*session.Error](err)
	if !known {
		failure = session.NewError(session.CodeGuestInternal,
			fmt.Sprintf("The program cannot be started safely: %v.", err),
			"Look at the agent's log; the container may lack a privilege that the guest needs.")
	}
	status := os.NewFile(statusFD, "status")
	_ = json.NewEncoder(status).Encode(failure.Cause())
	if failure.Code.Detail() == session.DetailNotFound {
		return codeNotFound
	}
	return codeForbidden
}

// become returns only if it failed.
func become(capabilities uint32, args []string) error {
	if len(args) < 4 {
		return errors.New("spawn needs a user, a group, a folder and a program")
	}
	uid, errUID := strconv.Atoi(args[0])
	groups, errGID := readGroups(args[1])
	if err := errors.Join(errUID, errGID); err != nil {
		return err
	}
	raiseScore()
	unix.Umask(0o022)
	if err := dropPrivileges(uid, groups, capabilities); err != nil {
		return err
	}
	dir, argv := args[2], args[3:]
	if err := os.Chdir(dir); err != nil {
		return session.NewError(session.CodeGuestInternal,
			fmt.Sprintf("Cannot change to directory %s: %v.", dir, files.Errno(err)),
			"Create it first, or choose another.")
	}
	return execute(argv)
}

// raiseScore applies childScore. It does nothing without /proc.
func raiseScore() {
	data, err := kernelFile("/proc/self/oom_score_adj", maxKernelText)
	if err != nil {
		return
	}
	own, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil {
		return
	}
	score := 0
	if own >= 0 {
		score = min(1000, own+childScore)
	}
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte(strconv.Itoa(score)), 0)
}

// writeGroups and readGroups convert the groups of a program to one argument and back.
func writeGroups(gid int, more []int) string {
	text := strconv.Itoa(gid)
	for _, group := range more {
		text += "," + strconv.Itoa(group)
	}
	return text
}

func readGroups(text string) ([]int, error) {
	var groups []int
	for field := range strings.SplitSeq(text, ",") {
		group, err := strconv.ParseUint(field, 10, 32)
		if err != nil {
			return nil, err
		}
		groups = append(groups, int(group))
	}
	return groups, nil
}

// dropPrivileges makes this thread the user's, with at most the given capabilities, and verifies it. groups begins with
// the primary. Only root keeps any, and a program that it executes has no more.
func dropPrivileges(uid int, groups []int, keep uint32) error {
	gid := groups[0]
	var kept [2]unix.CapUserData
	for capability := uintptr(0); ; capability++ {
		set, err := unix.PrctlRetInt(unix.PR_CAPBSET_READ, capability, 0, 0, 0)
		if err != nil {
			break // after the last that this kernel knows
		}
		if set == 0 {
			continue
		}
		if capability < 32 && keep&(1<<capability) != 0 {
			kept[0].Effective |= 1 << capability
			continue
		}
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, capability, 0, 0, 0); err != nil {
			return fmt.Errorf("give up capability %d: %w", capability, err)
		}
	}
	// For this thread only, unlike the standard library's.
	if err := unix.Setgroups(groups); err != nil && !(errors.Is(err, unix.EPERM) && groupsFixed()) {
		return fmt.Errorf("set groups: %w", err)
	}
	if _, _, e := syscall.RawSyscall(unix.SYS_SETRESGID, uintptr(gid), uintptr(gid), uintptr(gid)); e != 0 {
		return fmt.Errorf("set group %d: %w", gid, e)
	}
	if _, _, e := syscall.RawSyscall(unix.SYS_SETRESUID, uintptr(uid), uintptr(uid), uintptr(uid)); e != 0 {
		return fmt.Errorf("set user %d: %w", uid, e)
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var have [2]unix.CapUserData
	kept[0].Permitted = kept[0].Effective
	if err := unix.Capset(&header, &kept[0]); err != nil {
		return fmt.Errorf("give up capabilities: %w", err)
	}
	// Without inheritable capabilities there are no ambient ones either.
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("set no_new_privs: %w", err)
	}
	if err := unix.Capget(&header, &have[0]); err != nil || have != kept {
		return fmt.Errorf("capabilities remain: %v %w", have, err)
	}
	return nil
}

// groupsFixed reports whether nothing in this user namespace can change its groups, which are those of the person who
// made it. Such a person has no ids but their own. See user_namespaces(7).
func groupsFixed() bool {
	data, err := kernelFile("/proc/self/setgroups", maxKernelText)
	return err == nil && strings.TrimSpace(string(data)) == "deny"
}

func execute(argv []string) error {
	path := argv[0]
	if !strings.Contains(path, "/") {
		path = lookPath(path, os.Getenv("PATH"))
	}
	if path == "" {
		return noProgram(argv[0])
	}
	err := syscall.Exec(path, argv, os.Environ())
	switch {
	case !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.ENOTDIR):
		return session.NewError(session.CodeProcessForbidden,
			fmt.Sprintf("%s cannot be executed: %v.", path, files.Errno(err)),
			"Check that it is a program for this machine and is executable.")
	case executable(path):
		return session.NewError(session.CodeProcessForbidden,
			fmt.Sprintf("%s cannot be executed: its interpreter is missing.", path),
			"Install its interpreter or dynamic loader, or use an image that has it.")
	}
	return noProgram(argv[0])
}

func noProgram(name string) error {
	return session.NewError(session.CodeProcessNotFound, fmt.Sprintf("Program %q not found in this session.", name),
		"Check its name or path, or install it.")
}
