package link

import (
	"context"
	"net"
)

// An agent on the same machine connects to ports of a container with sockets that the guest made in the container's
// network and handed over before: which network a socket is in does not depend on who connects it. So neither the guest
// nor the link is in the way, and the agent alone says where it connects to.
const (
	// socketBatch is how many sockets the guest is asked for at a time, and fewSockets when it is asked again.
	socketBatch = 32
	fewSockets  = 16
	// mostSpare is how many sockets may wait for their use. More than that break the link.
	mostSpare = 2 * socketBatch
	// mostConnected is how many of them are connected at a time. Further connections use the link.
	mostConnected = 4096
)

// Dial connects to a port on the container's loopback; app_start_timeout. ctx applies to the connecting only.
func (c *Client) Dial(ctx context.Context, port int) (net.Conn, error) {
	if socket := c.socket(ctx); socket != nil {
		conn, err := c.sockets.connect(ctx, socket, port)
		if err == nil {
			return conn, nil
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, callError(ctx, err)
	}
	return c.open(ctx, Request{Op: OpDial, Port: port}, nil)
}

// socket takes a socket of the container's network, and waits for those that the guest is asked for. It returns nil if
// there is none.
func (c *Client) socket(ctx context.Context) *net.TCPConn {
	for c.sockets != nil {
		socket, left := c.sockets.take()
		var filled <-chan struct{}
		if left < fewSockets {
			filled = c.fill()
		}
		if socket != nil || filled == nil {
			return socket
		}
		select {
		case <-filled:
		case <-ctx.Done():
			return nil
		}
	}
	return nil
}

// fill asks the guest for sockets, unless it is asked already. The channel is closed once it has answered or the link
// is lost. It is nil if the guest has none.
func (c *Client) fill() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.filling != nil || c.noSockets {
		return c.filling
	}
	filled := make(chan struct{})
	left, before := c.sockets.left()
	if left >= fewSockets { // they came meanwhile; more would be too many
		close(filled)
		return filled
	}
	c.filling = filled
	go func() {
		// Sockets may come whenever it answers, so only the end of the link ends the wait.
		err := c.call(context.Background(), Request{Op: OpSockets, Count: socketBatch}, nil)
		_, after := c.sockets.left()
		c.mu.Lock()
		defer c.mu.Unlock()
		// A guest of an earlier version does not know the call, and a security module may hold sockets back.
		c.noSockets = err != nil || after == before
		c.filling = nil
		close(filled)
	}()
	return filled
}
