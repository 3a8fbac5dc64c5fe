package guest

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// places are what the guest uses as root while the container runs. They are opened before anything of the image or the
// person runs and stay open, so renaming or replacing them later has no effect.
type places struct {
	tree  *tree
	null  *os.File
	pts   *place // the kernel's terminals
	link  *place // where the agent listens
	spool *place // output of terminals
	home  *place
}

// openPlaces fails with an [unsafeError] if the image redirects one of them.
func openPlaces(t *tree) (*places, error) {
	p := &places{tree: t}
	var err error
	if p.null, err = openNull(t); err != nil {
		return nil, err
	}
	if p.pts, err = t.mounted("/dev/pts", false); err != nil {
		return nil, err
	}
	if !onFileSystem(p.pts.file, unix.DEVPTS_SUPER_MAGIC) {
		return nil, &unsafeError{p.pts.path, "is not the kernel's"}
	}
	if p.link, err = t.mounted(ownFolder+"/link", true); err != nil {
		return nil, err
	}
	if p.spool, err = t.mounted(ownFolder+"/spool", true); err != nil {
		return nil, err
	}
	if p.home, err = t.mounted(homePath, true); err != nil {
		return nil, err
	}
	return p, nil
}

// openNull opens the device that programs without input read from.
func openNull(t *tree) (*os.File, error) {
	dev, err := t.mounted("/dev", false)
	if err != nil {
		return nil, err
	}
	defer dev.close()
	null, err := dev.step("null") // rootless engines mount the machine's
	if err != nil {
		return nil, err
	}
	defer null.close()
	if null.stat.Mode&unix.S_IFMT != unix.S_IFCHR || null.stat.Rdev != unix.Mkdev(1, 3) {
		return nil, &unsafeError{null.path, "is not the kernel's"}
	}
	return null.open(unix.O_RDWR)
}

func (p *places) openPTY() (master, slave *os.File, err error) {
	master, err = openAt(p.pts.fd(), "ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_NOFOLLOW|unix.O_NONBLOCK)
	if err != nil {
		return nil, nil, fmt.Errorf("open a terminal: %w", err)
	}
	number, err := unlockPTY(master)
	if err == nil {
		slave, err = openAt(p.pts.fd(), fmt.Sprint(number), unix.O_RDWR|unix.O_NOCTTY|unix.O_NOFOLLOW)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("open a terminal: %w", errors.Join(err, master.Close()))
	}
	return master, slave, nil
}

// unlockPTY unlocks a terminal and returns its number, without Fd, which would make reads of the file blocking.
func unlockPTY(master *os.File) (number int, err error) {
	conn, err := master.SyscallConn()
	if err != nil {
		return 0, err
	}
	controlErr := conn.Control(func(fd uintptr) {
		if err = unix.IoctlSetPointerInt(int(fd), unix.TIOCSPTLCK, 0); err == nil {
			number, err = unix.IoctlGetInt(int(fd), unix.TIOCGPTN)
		}
	})
	return number, errors.Join(controlErr, err)
}
