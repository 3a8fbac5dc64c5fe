package agentrpc

import (
	"context"
	"crypto/rand"
	"io"
	"net"
	"time"

	"slipway/backend/session"
	"slipway/gpu"
)

// The client's side of the methods.

func (c *Client) Machine(ctx context.Context) (session.Machine, error) {
	return methodMachine.call(ctx, c, none{})
}

func (c *Client) Preview(ctx context.Context, owner string, s session.Spec) (session.Preview, error) {
	return methodPreview.call(ctx, c, previewArgs{s, owner}, specOf(s))
}

// Launch implements [session.Sessions]. A request without a Key gets one, so
// that it has one effect however often it must be sent.
func (c *Client) Launch(ctx context.Context, req session.LaunchRequest) (session.Session, error) {
	if req.Key == "" {
		req.Key = rand.Text()
	}
	return methodLaunch.call(ctx, c, req)
}

func (c *Client) Get(ctx context.Context, id session.ID) (session.Session, error) {
	return methodGet.call(ctx, c, byID{id}, ofSession(id))
}

func (c *Client) List(ctx context.Context, filter session.Filter) ([]session.Session, error) {
	return methodList.call(ctx, c, filter, atMost[session.Session](filter.Limit))
}

func (c *Client) SetTags(ctx context.Context, id session.ID, tags []string) (session.Session, error) {
	return methodSetTags.call(ctx, c, tagsArgs{id, tags}, ofSession(id))
}

func (c *Client) Rename(ctx context.Context, id session.ID, name string) (session.Session, error) {
	return methodRename.call(ctx, c, renameArgs{id, name}, ofSession(id))
}

func (c *Client) Terminate(ctx context.Context, id session.ID, forced bool) (session.Session, error) {
	return methodTerminate.call(ctx, c, terminateArgs{id, forced}, ofSession(id))
}

// Watch implements [session.Sessions]. It fails with agent_watch_unavailable
// when the stream is lost; the caller watches again from its cursor.
func (c *Client) Watch(ctx context.Context, after session.Cursor, fn func(session.Event) error) error {
	order := ordered(after)
	return methodWatch.follow(ctx, c, cursorArgs(after), fn, order)
}

func (c *Client) History(ctx context.Context, id session.ID) ([]session.Phase, error) {
	return methodHistory.call(ctx, c, byID{id}, all("session", func(p *session.Phase) bool { return p.Session == id }))
}

// Logs implements [session.Sessions]. The log goes on after a cut where the
// client can wait for its connection.
func (c *Client) Logs(ctx context.Context, id session.ID, opts session.LogOptions) (io.ReadCloser, error) {
	return methodLogs.open(ctx, c, logsArgs{ID: id, Options: opts})
}

func (c *Client) Usage(ctx context.Context, id session.ID, since time.Time) ([]session.Usage, error) {
	return methodUsage.call(ctx, c, sinceArgs{id, since}, all("session", func(u *session.Usage) bool {
		return u.Session == id
	}))
}

func (c *Client) ListTerminals(ctx context.Context, id session.ID) ([]session.Terminal, error) {
	return methodListTerminals.call(ctx, c, byID{id})
}

func (c *Client) OpenTerminal(ctx context.Context, id session.ID,
	req session.TerminalRequest) (session.Terminal, error) {
	return methodOpenTerminal.call(ctx, c, terminalArgs{id, req})
}

// AttachTerminal implements [session.Terminals]. ctx bounds only the joining.
func (c *Client) AttachTerminal(ctx context.Context, id session.ID,
	req session.AttachRequest) (io.ReadWriteCloser, error) {
	return methodAttachTerminal.open(ctx, c, attachArgs{id, req})
}

func (c *Client) CloseTerminal(ctx context.Context, id session.ID, terminal string) error {
	_, err := methodCloseTerminal.call(ctx, c, closeArgs{id, terminal})
	return err
}

// Exec implements [session.Terminals]. ctx bounds only the start.
func (c *Client) Exec(ctx context.Context, id session.ID, req session.ExecRequest) (io.ReadWriteCloser, error) {
	return methodExec.open(ctx, c, execArgs{id, req})
}

func (c *Client) SSHHost(ctx context.Context, id session.ID, kernel string) (session.SSHHost, error) {
	return methodSSHHost.call(ctx, c, sshHostArgs{id, kernel})
}

// DialSSH implements [session.SSH]. ctx bounds only the connecting.
func (c *Client) DialSSH(ctx context.Context, id session.ID, req session.SSHRequest) (net.Conn, error) {
	method := methodDialSSH
	if req.Bulk {
		method = methodDialSSHBulk
	}
	return method.open(ctx, c, sshArgs{id, req})
}

func (c *Client) ListApps(ctx context.Context, id session.ID) ([]session.App, error) {
	return methodListApps.call(ctx, c, byID{id})
}

func (c *Client) StartApp(ctx context.Context, id session.ID, req session.AppRequest) (session.App, error) {
	return methodStartApp.call(ctx, c, startArgs{id, req}, func(a *session.App) string {
		return another("app", a.ID == req.App)
	})
}

func (c *Client) StopApp(ctx context.Context, id session.ID, app string) error {
	_, err := methodStopApp.call(ctx, c, appArgs{id, app})
	return err
}

// DialPort implements [session.Apps]. ctx bounds only the connecting.
func (c *Client) DialPort(ctx context.Context, id session.ID, port int) (net.Conn, error) {
	return methodDialPort.open(ctx, c, portArgs{id, port})
}

func (c *Client) Devices(ctx context.Context) (session.DeviceBoard, error) {
	return methodDevices.call(ctx, c, none{})
}

func (c *Client) DeviceHistory(ctx context.Context, device gpu.UUID, since time.Time) ([]session.DevicePoint, error) {
	return methodDeviceHistory.call(ctx, c, deviceArgs{device, since})
}

func (c *Client) Accounts(ctx context.Context, span session.AccountSpan) ([]session.Account, error) {
	return methodAccounts.call(ctx, c, span)
}

func (c *Client) SetPriority(ctx context.Context, id session.ID, priority int) (session.Session, error) {
	return methodSetPriority.call(ctx, c, priorityArgs{id, priority}, ofSession(id))
}

func (c *Client) Keep(ctx context.Context, id session.ID, length session.Duration) (session.Session, error) {
	return methodKeep.call(ctx, c, keepArgs{id, length}, ofSession(id))
}

func (c *Client) SimulateIdle(ctx context.Context, id session.ID,
	policy session.IdlePolicy) (session.IdleSimulation, error) {
	return methodSimulateIdle.call(ctx, c, policyArgs{id, policy})
}

func (c *Client) Doctor(ctx context.Context) ([]session.Check, error) {
	return methodDoctor.call(ctx, c, none{})
}

func (c *Client) ListDirectories(ctx context.Context, path string) (session.DirectoryListing, error) {
	return methodListDirectories.call(ctx, c, pathArgs{path})
}

func (c *Client) DescribeImage(ctx context.Context, ref string) (session.ImageParts, error) {
	return methodDescribeImage.call(ctx, c, refArgs{ref})
}

func (c *Client) SendImage(ctx context.Context, wish session.ImageWish) (io.ReadCloser, error) {
	return methodSendImage.open(ctx, c, wish)
}

func (c *Client) ExpectImage(ctx context.Context, parts session.ImageParts) (session.ImageArrival, error) {
	return methodExpectImage.call(ctx, c, parts, arrivalOf(parts))
}

// ReceiveImage implements [session.ImageTransfers]. ctx bounds only the beginning.
func (c *Client) ReceiveImage(ctx context.Context, id string) (io.ReadWriteCloser, error) {
	return methodReceiveImage.open(ctx, c, imageArgs{id})
}

func (c *Client) InstallImage(ctx context.Context, id string) (session.Image, error) {
	return methodInstallImage.call(ctx, c, imageArgs{id})
}

func (c *Client) ForgetImage(ctx context.Context, id string) error {
	_, err := methodForgetImage.call(ctx, c, imageArgs{id})
	return err
}
