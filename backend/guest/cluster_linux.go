package guest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"slipway/backend/engine"
	"slipway/backend/session"
)

// sshLink is where the guest's own ssh stands in for one that the image lacks.
const (
	sshLinkDir = "/usr/local/bin"
	guestPath  = "/.slipway/guest"
)

// joinCluster lets the kernels of the session reach this one by ssh until ctx ends, and this one the others.
func (c *container) joinCluster(ctx context.Context, cluster engine.Cluster) error {
	trouble := func(err error) error {
		if err == nil {
			return nil
		}
		return session.WrapError(err, session.CodeNoSSH,
			fmt.Sprintf("The kernels of this session may not reach %s by ssh: %v.", cluster.Self, err),
			"Start the session again. If it happens again, check its log.")
	}
	server, err := newClusterServer(cluster, c)
	if err != nil {
		return trouble(err)
	}
	listener, err := listenCluster(ctx, cluster)
	if err != nil {
		return trouble(err)
	}
	go server.serve(ctx, listener)
	return trouble(errors.Join(c.writeSSH(cluster), c.linkSSH()))
}

// writeSSH writes ~/.ssh as the person.
func (c *container) writeSSH(cluster engine.Cluster) error {
	settings, err := json.Marshal(cluster)
	if err != nil {
		return err
	}
	process, err := c.Start(Command{Argv: []string{selfPath, "ssh-setup"}, Stdin: true})
	if err != nil {
		return err
	}
	in := process.Stdin()
	_, err = in.Write(settings)
	if err := errors.Join(err, in.Close()); err != nil {
		process.Kill()
		return err
	}
	go func() { _, _ = io.Copy(io.Discard, process.Stdout()) }()
	var said bytes.Buffer
	_, _ = io.Copy(&said, io.LimitReader(process.Stderr(), 4<<10)) // the code tells
	if code := process.Wait(); code != 0 {
		return fmt.Errorf("write ~/.ssh: %s", bytes.TrimSpace(said.Bytes()))
	}
	return nil
}

// linkSSH gives an image without ssh the guest's own.
func (c *container) linkSSH() error {
	path, _ := c.env.get("PATH")
	if lookPath("ssh", path) != "" {
		return nil
	}
	dir, err := c.held.tree.image(sshLinkDir, true)
	if err != nil {
		return err
	}
	defer dir.close()
	if err := dir.link("ssh", guestPath); !errors.Is(err, fs.ErrExist) { // a file that is no program
		return err
	}
	return nil
}
