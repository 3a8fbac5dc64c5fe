package agentrpc

import (
	"context"
	"io"
	"time"

	"slipway/backend/session"
	"slipway/gpu"
	"slipway/tunnel"
)

// How long a call may take until its answer.
const (
	short = time.Minute
	long  = 2 * time.Minute
	// slow is for what an engine does with many gigabytes.
	slow = time.Hour
)

// The arguments of the methods, where they are more than one.
type (
	byID struct {
		ID session.ID `json:"id"`
	}
	renameArgs struct {
		ID   session.ID `json:"id"`
		Name string     `json:"name"`
	}
	tagsArgs struct {
		ID   session.ID `json:"id"`
		Tags []string   `json:"tags"`
	}
	terminateArgs struct {
		ID     session.ID `json:"id"`
		Forced bool       `json:"forced,omitempty"`
	}
	cursorArgs struct {
		Epoch string `json:"epoch,omitempty"`
		Seq   uint64 `json:"seq,omitempty"`
	}
	sinceArgs struct {
		ID    session.ID `json:"id"`
		Since time.Time  `json:"since"`
	}
	terminalArgs struct {
		ID       session.ID              `json:"id"`
		Terminal session.TerminalRequest `json:"terminal"`
	}
	attachArgs struct {
		ID     session.ID            `json:"id"`
		Attach session.AttachRequest `json:"attach"`
	}
	sshHostArgs struct {
		ID     session.ID `json:"id"`
		Kernel string     `json:"kernel,omitempty"`
	}
	sshArgs struct {
		ID  session.ID         `json:"id"`
		SSH session.SSHRequest `json:"ssh"`
	}
	closeArgs struct {
		ID       session.ID `json:"id"`
		Terminal string     `json:"terminal"`
	}
	// previewArgs are those of a spec alone, as they were before, and an owner.
	previewArgs struct {
		session.Spec
		Owner string `json:"owner,omitempty"`
	}
	execArgs struct {
		ID   session.ID          `json:"id"`
		Exec session.ExecRequest `json:"exec"`
	}
	appArgs struct {
		ID  session.ID `json:"id"`
		App string     `json:"app"`
	}
	startArgs struct {
		ID session.ID `json:"id"`
		session.AppRequest
	}
	portArgs struct {
		ID   session.ID `json:"id"`
		Port int        `json:"port"`
	}
	deviceArgs struct {
		Device gpu.UUID  `json:"device"`
		Since  time.Time `json:"since"`
	}
	priorityArgs struct {
		ID       session.ID `json:"id"`
		Priority int        `json:"priority"`
	}
	keepArgs struct {
		ID     session.ID       `json:"id"`
		Length session.Duration `json:"length"`
	}
	pathArgs struct {
		Path string `json:"path,omitempty"`
	}
	refArgs struct {
		Ref string `json:"ref"`
	}
	imageArgs struct {
		ID string `json:"id"`
	}
	policyArgs struct {
		ID     session.ID         `json:"id"`
		Policy session.IdlePolicy `json:"policy"`
	}
)

// methodHello is answered by the handler itself.
var methodHello = plain[none, Hello]{spec: spec{"hello", "connect", tunnel.Control, read, short}}

// The methods of [session.Sessions].
var (
	methodMachine = plain[none, session.Machine]{spec{"machine", "read", tunnel.Control, read, short},
		func(ctx context.Context, a session.Agent, _ none) (session.Machine, error) { return a.Machine(ctx) }}
	methodPreview = plain[previewArgs, session.Preview]{spec{"preview", "preview", tunnel.Control, read, short},
		func(ctx context.Context, a session.Agent, r previewArgs) (session.Preview, error) {
			return a.Preview(ctx, r.Owner, r.Spec)
		}}
	methodLaunch = plain[session.LaunchRequest, session.Session]{spec{"launch", "launch", tunnel.Control, again, short},
		func(ctx context.Context, a session.Agent, r session.LaunchRequest) (session.Session, error) {
			return a.Launch(ctx, r)
		}}
	methodGet = plain[byID, session.Session]{spec{"get", "read", tunnel.Control, read, short},
		func(ctx context.Context, a session.Agent, r byID) (session.Session, error) { return a.Get(ctx, r.ID) }}
	methodList = plain[session.Filter, []session.Session]{spec{"list", "read", tunnel.Control, read, long},
		func(ctx context.Context, a session.Agent, f session.Filter) ([]session.Session, error) {
			return a.List(ctx, f)
		}}
	methodRename = plain[renameArgs, session.Session]{spec{"rename", "rename", tunnel.Control, again, short},
		func(ctx context.Context, a session.Agent, r renameArgs) (session.Session, error) {
			return a.Rename(ctx, r.ID, r.Name)
		}}
	methodSetTags = plain[tagsArgs, session.Session]{spec{"tags", "tag", tunnel.Control, again, short},
		func(ctx context.Context, a session.Agent, r tagsArgs) (session.Session, error) {
			return a.SetTags(ctx, r.ID, r.Tags)
		}}
	methodTerminate = plain[terminateArgs, session.Session]{spec{"terminate", "terminate", tunnel.Control, again,
		short},
		func(ctx context.Context, a session.Agent, r terminateArgs) (session.Session, error) {
			return a.Terminate(ctx, r.ID, r.Forced)
		}}
	methodWatch = feed[cursorArgs, session.Event]{spec{"watch", "watch", tunnel.Control, read, short},
		func(ctx context.Context, a session.Agent, c cursorArgs, tell func(session.Event) error) error {
			return a.Watch(ctx, session.Cursor(c), tell)
		}}
	methodHistory = plain[byID, []session.Phase]{spec{"history", "read", tunnel.Control, read, short},
		func(ctx context.Context, a session.Agent, r byID) ([]session.Phase, error) {
			return a.History(ctx, r.ID)
		}}
	methodLogs  = download[logsArgs]{spec{"logs", "logs", tunnel.Bulk, read, long}, openLogs, logsArgs.at}
	methodUsage = plain[sinceArgs, []session.Usage]{spec{"usage", "read", tunnel.Control, read, short},
		func(ctx context.Context, a session.Agent, r sinceArgs) ([]session.Usage, error) {
			return a.Usage(ctx, r.ID, r.Since)
		}}
)

// The methods of [session.Terminals].
var (
	methodListTerminals = plain[byID, []session.Terminal]{spec{"terminals", "read", tunnel.Control, read, short},
		func(ctx context.Context, a session.Agent, r byID) ([]session.Terminal, error) {
			return a.ListTerminals(ctx, r.ID)
		}}
	methodOpenTerminal = plain[terminalArgs, session.Terminal]{spec{"terminal.open", "open", tunnel.Control, once,
		short},
		func(ctx context.Context, a session.Agent, r terminalArgs) (session.Terminal, error) {
			return a.OpenTerminal(ctx, r.ID, r.Terminal)
		}}
	methodAttachTerminal = duplex[attachArgs]{spec{"terminal.attach", "attach", tunnel.Interactive, once, short},
		func(ctx context.Context, a session.Agent, r attachArgs) (io.ReadWriteCloser, error) {
			return a.AttachTerminal(ctx, r.ID, r.Attach)
		}, 0}
	methodCloseTerminal = plain[closeArgs, none]{spec{"terminal.close", "close", tunnel.Control, once, short},
		func(ctx context.Context, a session.Agent, r closeArgs) (none, error) {
			return none{}, a.CloseTerminal(ctx, r.ID, r.Terminal)
		}}
	methodExec = duplex[execArgs]{spec{"exec", "exec", tunnel.Interactive, once, short},
		func(ctx context.Context, a session.Agent, r execArgs) (io.ReadWriteCloser, error) {
			return a.Exec(ctx, r.ID, r.Exec)
		}, 0}
)

// The methods of [session.SSH].
var (
	methodSSHHost = plain[sshHostArgs, session.SSHHost]{spec{"ssh.host", "read", tunnel.Control, read, short},
		func(ctx context.Context, a session.Agent, r sshHostArgs) (session.SSHHost, error) {
			return a.SSHHost(ctx, r.ID, r.Kernel)
		}}
	methodDialSSH     = duplex[sshArgs]{spec{"ssh", "dial", tunnel.Interactive, once, short}, dialSSH, lastingWindow}
	methodDialSSHBulk = duplex[sshArgs]{spec{"ssh.bulk", "dial", tunnel.Bulk, once, short}, dialSSH, bulkWindow}
)

func dialSSH(ctx context.Context, a session.Agent, r sshArgs) (io.ReadWriteCloser, error) {
	return a.DialSSH(ctx, r.ID, r.SSH)
}

// The methods of [session.Apps].
var (
	methodListApps = plain[byID, []session.App]{spec{"apps", "read", tunnel.Control, read, short},
		func(ctx context.Context, a session.Agent, r byID) ([]session.App, error) {
			return a.ListApps(ctx, r.ID)
		}}
	methodStartApp = plain[startArgs, session.App]{spec{"app.start", "start", tunnel.Control, again, long},
		func(ctx context.Context, a session.Agent, r startArgs) (session.App, error) {
			return a.StartApp(ctx, r.ID, r.AppRequest)
		}}
	methodStopApp = plain[appArgs, none]{spec{"app.stop", "stop", tunnel.Control, again, short},
		func(ctx context.Context, a session.Agent, r appArgs) (none, error) {
			return none{}, a.StopApp(ctx, r.ID, r.App)
		}}
	methodDialPort = duplex[portArgs]{spec{"port.dial", "dial", tunnel.Interactive, once, short},
		func(ctx context.Context, a session.Agent, r portArgs) (io.ReadWriteCloser, error) {
			return a.DialPort(ctx, r.ID, r.Port)
		}, lastingWindow}
)

// The methods of [session.ImageTransfers].
var (
	methodDescribeImage = plain[refArgs, session.ImageParts]{spec{"image.describe", "read", tunnel.Control, read, long},
		func(ctx context.Context, a session.Agent, r refArgs) (session.ImageParts, error) {
			return a.DescribeImage(ctx, r.Ref)
		}}
	methodSendImage = download[session.ImageWish]{spec{"image.send", "send", tunnel.Bulk, read, long},
		func(ctx context.Context, a session.Agent, w session.ImageWish) (downloaded, error) {
			stream, err := a.SendImage(ctx, w)
			return downloaded{ReadCloser: stream, offset: -1}, err // what is resumed is the transfer
		}, nil}
	methodExpectImage = plain[session.ImageParts, session.ImageArrival]{spec{"image.expect", "receive", tunnel.Control,
		again, long},
		func(ctx context.Context, a session.Agent, p session.ImageParts) (session.ImageArrival, error) {
			return a.ExpectImage(ctx, p)
		}}
	methodReceiveImage = duplex[imageArgs]{spec{"image.receive", "receive", tunnel.Bulk, once, short},
		func(ctx context.Context, a session.Agent, r imageArgs) (io.ReadWriteCloser, error) {
			return a.ReceiveImage(ctx, r.ID)
		}, 0}
	methodInstallImage = plain[imageArgs, session.Image]{spec{"image.install", "install", tunnel.Control, again, slow},
		func(ctx context.Context, a session.Agent, r imageArgs) (session.Image, error) {
			return a.InstallImage(ctx, r.ID)
		}}
	methodForgetImage = plain[imageArgs, none]{spec{"image.forget", "forget", tunnel.Control, again, short},
		func(ctx context.Context, a session.Agent, r imageArgs) (none, error) {
			return none{}, a.ForgetImage(ctx, r.ID)
		}}
)

// The methods of [session.Accelerators] and [session.Queue].
var (
	methodDevices = plain[none, session.DeviceBoard]{spec{"devices", "read", tunnel.Control, read, short},
		func(ctx context.Context, a session.Agent, _ none) (session.DeviceBoard, error) { return a.Devices(ctx) }}
	methodDeviceHistory = plain[deviceArgs, []session.DevicePoint]{spec{"device.history", "read", tunnel.Control, read,
		short},
		func(ctx context.Context, a session.Agent, r deviceArgs) ([]session.DevicePoint, error) {
			return a.DeviceHistory(ctx, r.Device, r.Since)
		}}
	methodAccounts = plain[session.AccountSpan, []session.Account]{spec{"accounts", "read", tunnel.Control, read, long},
		func(ctx context.Context, a session.Agent, r session.AccountSpan) ([]session.Account, error) {
			return a.Accounts(ctx, r)
		}}
	methodSetPriority = plain[priorityArgs, session.Session]{spec{"priority", "update", tunnel.Control, again, short},
		func(ctx context.Context, a session.Agent, r priorityArgs) (session.Session, error) {
			return a.SetPriority(ctx, r.ID, r.Priority)
		}}
	methodKeep = plain[keepArgs, session.Session]{spec{"keep", "update", tunnel.Control, again, short},
		func(ctx context.Context, a session.Agent, r keepArgs) (session.Session, error) {
			return a.Keep(ctx, r.ID, r.Length)
		}}
	methodSimulateIdle = plain[policyArgs, session.IdleSimulation]{spec{"idle.simulate", "read", tunnel.Control, read,
		short},
		func(ctx context.Context, a session.Agent, r policyArgs) (session.IdleSimulation, error) {
			return a.SimulateIdle(ctx, r.ID, r.Policy)
		}}
)

// The methods of [session.Host].
var (
	methodDoctor = plain[none, []session.Check]{spec{"doctor", "read", tunnel.Control, read, long},
		func(ctx context.Context, a session.Agent, _ none) ([]session.Check, error) { return a.Doctor(ctx) }}
	methodListDirectories = plain[pathArgs, session.DirectoryListing]{spec{"directories", "read", tunnel.Control, read,
		short},
		func(ctx context.Context, a session.Agent, r pathArgs) (session.DirectoryListing, error) {
			return a.ListDirectories(ctx, r.Path)
		}}
)

// methods is what a handler answers.
var methods = []served{
	methodMachine, methodPreview, methodLaunch, methodGet, methodList, methodRename, methodSetTags, methodTerminate,
	methodWatch, methodHistory, methodLogs, methodUsage,
	methodListTerminals, methodOpenTerminal, methodAttachTerminal, methodCloseTerminal, methodExec,
	methodSSHHost, methodDialSSH, methodDialSSHBulk,
	methodListApps, methodStartApp, methodStopApp, methodDialPort,
	methodDevices, methodDeviceHistory, methodAccounts, methodSetPriority, methodKeep, methodSimulateIdle,
	methodDoctor, methodListDirectories,
	methodListFiles, methodStatFile, methodReadFile, methodChecksumFile, methodUploadOffset, methodWriteUpload,
	methodFinishUpload, methodDropUpload,
	methodMakeDirectory, methodMoveFile, methodRemoveFile,
	methodListFolders, methodGetFolder, methodCreateFolder, methodUpdateFolder, methodTrashFolder, methodRestoreFolder,
	methodDeleteFolder, methodStopDeleting,
	methodDescribeImage, methodSendImage, methodExpectImage, methodReceiveImage, methodInstallImage, methodForgetImage,
	methodListImages, methodPullImage, methodCommitSession, methodAwaitImageWork, methodCancelImageWork,
	methodRemoveImage, methodImageDisk,
	methodAudit, methodLimits, methodSetLimit, methodKnownDevices, methodRevokeDevice,
}
