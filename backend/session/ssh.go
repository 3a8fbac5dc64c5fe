package session

import (
	"context"
	"net"
	"time"
)

// SSH reaches the ssh server that comes with every kernel, whatever its image
// holds. It listens nowhere: a connection goes the way that terminals go.
type SSH interface {
	// SSHHost says by which key a kernel proves who it is, main1 where none is
	// named. It fails with session_update_conflict where the session was launched
	// without ssh.
	//
	//rpc:method name=ssh.host effect=read args=id,kernel? who=owner
	SSHHost(ctx context.Context, id ID, kernel string) (SSHHost, error)
	// DialSSH opens one connection to a kernel's ssh server, which lets in whoever
	// has the private key to req.Key. session_update_conflict, ssh_open_invalid.
	//
	//rpc:method name=ssh effect=once args=id,ssh who=owner audit=req.Kernel
	DialSSH(ctx context.Context, id ID, req SSHRequest) (net.Conn, error)
}

// SSHHost is what the ssh server of one kernel is known by. Its key is made when
// the kernel starts and ends with it.
type SSHHost struct {
	Key string `json:"key"` // public, as a line of authorized_keys has it: type and base64
}

// SSHRequest asks for one connection.
type SSHRequest struct {
	Kernel string `json:"kernel,omitempty"`
	Key    string `json:"key"`            // public, of the only one who is let in, as a line of authorized_keys has it
	Bulk   bool   `json:"bulk,omitempty"` // it is made for files, and gives way to what a person waits for
}

// SSHUse is what went through the ssh server of one kernel. Signs of life are
// not counted.
type SSHUse struct {
	Last    time.Time `json:"last,omitzero"`     // anything; zero: never
	Input   time.Time `json:"input,omitzero"`    // a person's to a terminal; zero: never
	Program string    `json:"program,omitempty"` // one that runs for a caller now, other than a shell that waits
}
