package local

import (
	"os"
	"os/user"
	"path/filepath"
	"strconv"
)

// User returns the ids of the owner of the sessions: the user of this process, or who became root with sudo.
func User() (uid, gid int) {
	uid, gid = max(os.Getuid(), 0), max(os.Getgid(), 0)
	if uid != 0 {
		return uid, gid
	}
	sudoUID, uidErr := strconv.Atoi(os.Getenv("SUDO_UID"))
	sudoGID, gidErr := strconv.Atoi(os.Getenv("SUDO_GID"))
	if uidErr != nil || gidErr != nil || sudoUID <= 0 {
		return uid, gid
	}
	return sudoUID, sudoGID
}

// AllowedUsers returns the ids of the users of this computer who may connect: the user of this process, that of [User],
// and root. It is empty if the operating system has no such ids.
func AllowedUsers() []int {
	if os.Getuid() < 0 {
		return nil
	}
	uid, _ := User()
	return []int{0, os.Getuid(), uid}
}

// UserName returns the name of the user of [User].
func UserName() string {
	uid, _ := User()
	if found, err := user.LookupId(strconv.Itoa(uid)); err == nil && found.Username != "" {
		return filepath.Base(found.Username)
	}
	if name := os.Getenv("USER"); name != "" {
		return name
	}
	return "uid-" + strconv.Itoa(uid)
}
