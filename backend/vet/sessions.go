package vet

import (
	"reflect"
	"strings"

	"slipway/backend/session"
	"slipway/gpu"
)

// texts of failures and warnings.
var (
	title   = Line(mostTitle)
	Message = Prose(mostText)
	said    = List(64)
)

// sessions are the rules of what tells of sessions.
var sessions = Tables{Fields: map[reflect.Type]Fields{
	reflect.TypeFor[session.Session](): {
		"Name": name, "Owner": Maybe(Owner), "Agent": Line(64), "Tags": List(session.MaxTags, tag), "Revision": Free,
	},
	reflect.TypeFor[session.Resolved](): {
		"Priority": Whole(-mostCount, mostCount), "DependsOn": List(64), "Pinned": Maybe(reference),
	},
	reflect.TypeFor[session.Progress](): {"Attempt": count, "Warnings": List(mostWarnings), "Idle": List(16)},
	reflect.TypeFor[session.Allocation](): {
		"Kernels": List(64), "Folders": List(session.MaxFolders), "Processes": count,
	},
	reflect.TypeFor[session.End](): {"ExitCode": exit},
	reflect.TypeFor[session.Spec](): {
		"Name": Maybe(name), "Image": Maybe(reference), "Command": Bytes(128 << 10), "Env": List(session.MaxEnv),
		"Mounts": List(session.MaxMounts), "Cluster": Whole(0, session.MaxCluster), "Label": label,
	},
	reflect.TypeFor[session.Tuning](): {"Threads": Whole(0, session.MaxThreads)},
	reflect.TypeFor[session.Access](): {"Ports": List(session.MaxPorts, port)},
	reflect.TypeFor[session.Schedule](): {
		"Agent": Line(64), "Group": Line(64), "NotBefore": OrZero(Moment), "Priority": Whole(0, session.MaxPriority),
		"After": List(session.MaxAfter, idOrName),
	},
	reflect.TypeFor[session.Lifetime]():  {"CommitOnEnd": Whole(0, session.MaxCommitOnEnd)},
	reflect.TypeFor[session.EnvVar]():    {"Name": variable, "Value": Bytes(100 << 10)},
	reflect.TypeFor[session.Resources](): {"CPU": cpu},
	reflect.TypeFor[session.Mount](): {
		"Source": Maybe(absolute), "Folder": Maybe(folderRef), "Path": subPath, "Target": Maybe(target),
	},
	reflect.TypeFor[session.IdlePolicy](): {},
	reflect.TypeFor[session.UsePolicy]():  {"CPU": percent, "Memory": percent, "GPU": percent, "VRAM": percent},
	reflect.TypeFor[gpu.Request]():        {"Devices": Whole(0, mostDevices), "Profile": Line(128), "Count": count},
	reflect.TypeFor[session.Warning]():    {"Title": title, "Text": Message, "Device": Maybe(uuid)},
	reflect.TypeFor[session.Wait]():       {"Message": Message, "Said": said, "Position": count},
	reflect.TypeFor[session.Pull]():       {"LayersDone": count, "Layers": count},
	reflect.TypeFor[session.Grants]():     {"CPUs": List(mostCPUs, cpu), "GPUs": List(mostDevices)},
	reflect.TypeFor[gpu.Grant]():          {"Instance": Maybe(uuid)},
	reflect.TypeFor[session.Kernel](): {
		"Name": kernel, "Hostname": Maybe(host), "Container": Maybe(Mark), "ExitCode": exit,
	},
	reflect.TypeFor[session.EndImage](): {"Name": Maybe(Mark), "Ref": Maybe(reference)},
	reflect.TypeFor[session.Cause]():    {"Message": Message, "Hint": Message, "Said": said, "Advice": said},
	reflect.TypeFor[session.FolderMount](): {
		"Name": folder, "Path": subPath, "Target": target,
	},
	reflect.TypeFor[session.IdleCheck]():      {"Message": Message, "Metrics": List(16)},
	reflect.TypeFor[session.IdleMetric]():     {"Name": word, "Average": amount, "Threshold": amount},
	reflect.TypeFor[session.IdleSimulation](): {"Message": Message, "Checks": List(16)},
	reflect.TypeFor[session.Phase](): {
		"ID": Mark, "From": Maybe(statusRule()), "To": Maybe(statusRule()), "Attempts": count, "Code": Maybe(code),
		"Message": Message, "Said": said,
		"Steps": List(mostWarnings),
	},
	reflect.TypeFor[session.Step](): {"Step": word, "Message": Message, "Said": said, "Code": Maybe(code)},
	reflect.TypeFor[session.Terminal](): {
		"ID": Mark, "Title": title, "Kernel": Maybe(kernel), "Cols": OrZero(port), "Rows": OrZero(port),
		"Start": Offset,
		"End":   Offset, "ExitCode": exit,
	},
	reflect.TypeFor[session.App](): {
		"ID": app, "Title": title, "Kind": word, "Port": port, "Path": OrZero(Maybe(address)), "Dir": Line(mostPath),
	},
	reflect.TypeFor[session.SSHHost](): {"Key": key},
	reflect.TypeFor[session.FieldError](): {
		"Field": title, "Message": Message, "Hint": Message, "Said": said,
	},
	reflect.TypeFor[session.Preview](): {
		"Spec":   Free, // what a person has written, right or wrong: its caller judges it
		"Errors": List(1000), "Warnings": List(1000), "Folders": List(session.MaxFolders),
		"GPUs": List(mostDevices * session.MaxCluster),
	},
	reflect.TypeFor[gpu.Rounding](): {"Why": Message},
	reflect.TypeFor[session.Event](): {
		"Epoch": Maybe(Mark), "Seq": Free, "Owner": Maybe(Owner), "Usage": List(MostSessions),
	},
	reflect.TypeFor[session.Reset](): {"Sessions": List(MostSessions)},
	reflect.TypeFor[session.Usage](): {"CPU": amount, "Pids": count, "GPUs": List(mostDevices)},
	reflect.TypeFor[session.DeviceLoad](): {
		"Instance": Maybe(uuid), "Util": part,
	},
}}

func statusRule() Rule { return common.Types[reflect.TypeFor[session.Status]()] }

// key is a public key as one line of authorized_keys has it.
var key = Text("a public key", func(text string) bool {
	if len(text) > 8<<10 || !plain(text, 8<<10) {
		return false
	}
	kind, rest, ok := strings.Cut(text, " ")
	return ok && made(kind, 64, "@.-") && made(rest, 8<<10, "+/=")
})
