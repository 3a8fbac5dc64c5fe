package vet

import (
	"path"
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
	ofSlurm = Line(session.MaxSlurmText) // a name of Slurm, which is checked where it is chosen
)

var sessions = Tables{Fields: map[reflect.Type]Fields{
	reflect.TypeFor[session.Session](): {
		"Name": name, "Owner": Maybe(Owner), "Agent": Line(64), "Tags": List(session.MaxTags, tag), "Revision": Free,
	},
	reflect.TypeFor[session.Resolved](): {
		"Priority": Whole(-mostCount, mostCount), "DependsOn": List(64), "Pinned": Maybe(reference),
		"Launch": Maybe(id), "Key": Line(128),
	},
	reflect.TypeFor[session.Progress](): {"Attempt": count, "Warnings": List(mostWarnings), "Idle": List(16)},
	reflect.TypeFor[session.Move]():     {"From": Maybe(id)},
	reflect.TypeFor[session.Floats]():   {"Group": Line(64)},
	reflect.TypeFor[session.Allocation](): {
		"Kernels": List(64), "Folders": List(session.MaxFolders), "Processes": count,
	},
	reflect.TypeFor[session.End](): {"ExitCode": exit},
	reflect.TypeFor[session.Spec](): {
		"Name": Maybe(name), "Image": Maybe(reference), "Command": Bytes(128 << 10), "Env": List(session.MaxEnv),
		"Secrets": List(session.MaxEnv, variable), "Mounts": List(session.MaxMounts),
		"Cluster": Whole(0, session.MaxCluster), "Label": label,
	},
	reflect.TypeFor[session.Tuning](): {"Threads": Whole(0, session.MaxThreads)},
	reflect.TypeFor[session.Access](): {"Ports": List(session.MaxPorts, port)},
	reflect.TypeFor[session.Serving](): {
		"Service": Maybe(name), "Revision": count, "Command": List(session.MaxArguments, Bytes(128<<10)), "Port": port,
		"Models": List(session.MaxModels, title), "PreStart": List(session.MaxStartActions),
	},
	reflect.TypeFor[session.StartAction](): {
		"Action": word, "Path": Line(mostPath), "Body": Bytes(128 << 10), "Mode": Line(8),
		"Command": List(session.MaxArguments, Bytes(128<<10)), "Message": Message,
	},
	reflect.TypeFor[session.Service](): {
		"Name": name, "Owner": Maybe(Owner), "Agent": Line(64), "Revision": count,
		"Revisions": List(1000), "Live": List(1000), "Tokens": List(1000), "Addresses": List(10), "Events": List(1000),
	},
	reflect.TypeFor[session.ServiceCondition](): {"Why": Message, "Said": said},
	reflect.TypeFor[session.ServiceAddress](): {
		"URL": Maybe(apiBase), "Fault": Line(1000), "Certificate": Maybe(certificate),
	},
	reflect.TypeFor[session.ServiceEvent](): {
		"Kind": word, "Message": Message, "Said": said, "Why": Message, "Because": said, "Session": Maybe(id),
	},
	reflect.TypeFor[session.ServiceWish](): {"Replicas": count, "Rules": List(session.MaxRules)},
	reflect.TypeFor[session.ScalingRule](): {
		"Source": word, "Metric": title, "ScaleUp": amount, "ScaleDown": amount, "StepSize": count,
		"MinReplicas": count, "MaxReplicas": count,
	},
	reflect.TypeFor[session.ServiceScaling](): {
		"Target": count, "ChangedAt": OrZero(Moment), "Rules": List(session.MaxRules),
	},
	reflect.TypeFor[session.RuleState](): {
		"Value": Number(-session.MaxRuleValue, session.MaxRuleValue), "Due": OrZero(Moment),
	},
	reflect.TypeFor[session.Revision](): {"Number": count},
	reflect.TypeFor[session.Replica](): {"Session": id, "Revision": count, "Why": Message, "Said": said,
		"Outstanding": count},
	reflect.TypeFor[session.ServiceTraffic](): {
		"Waiting": count, "Outstanding": count, "Requests": Offset, "Failed": Offset, "Prompt": Offset,
		"Completion": Offset, "FirstWordMs": Offset, "FirstWordP99Ms": Offset,
		"TokensPerSecond": Number(0, 1e12), "Last": OrZero(Moment),
	},
	reflect.TypeFor[session.ServiceToken](): {
		"ID": Mark, "Name": label, "ExpiresAt": OrZero(Moment), "PerMinute": count, "Concurrent": count,
	},
	reflect.TypeFor[session.NewToken](): {"Text": Mark},
	reflect.TypeFor[session.Health]():   {"Path": Maybe(address), "MaxRetries": count, "ExpectedStatusCode": count},
	reflect.TypeFor[session.Schedule](): {
		"Agent": Line(64), "Group": Line(64), "NotBefore": OrZero(Moment), "Priority": Whole(0, session.MaxPriority),
		"After": List(session.MaxAfter, idOrName),
	},
	reflect.TypeFor[session.Slurm](): {
		"Partition": ofSlurm, "Account": ofSlurm, "QOS": ofSlurm, "GPUType": ofSlurm, "Constraint": ofSlurm,
		"Reservation": ofSlurm, "Options": List(session.MaxSlurmOptions, Line(session.MaxSlurmOption)),
	},
	reflect.TypeFor[session.Lifetime]():  {"Setup": Bytes(128 << 10), "CommitOnEnd": Whole(0, session.MaxCommitOnEnd)},
	reflect.TypeFor[session.EnvVar]():    {"Name": variable, "Value": Bytes(100 << 10)},
	reflect.TypeFor[session.Resources](): {"CPU": cpu},
	reflect.TypeFor[session.Mount](): {
		"Source": Maybe(absolute), "Folder": Maybe(folderRef), "Path": subPath, "Target": Maybe(target),
	},
	reflect.TypeFor[session.IdlePolicy](): {},
	reflect.TypeFor[session.UsePolicy]():  {"CPU": percent, "Memory": percent, "GPU": percent, "VRAM": percent},
	reflect.TypeFor[gpu.Request]():        {"Devices": Whole(0, mostDevices), "Profile": Line(128), "Count": count},
	reflect.TypeFor[session.Warning]():    {"Title": title, "Text": Message, "Device": Maybe(uuid)},
	reflect.TypeFor[session.Wait]():       {"Message": Message, "Said": said, "Details": said, "Position": count},
	reflect.TypeFor[session.Pull]():       {"LayersDone": count, "Layers": count},
	reflect.TypeFor[session.Grants]():     {"CPUs": List(mostCPUs, cpu), "GPUs": List(mostDevices)},
	reflect.TypeFor[gpu.Grant]():          {"Instance": Maybe(uuid)},
	reflect.TypeFor[session.Kernel](): {
		"Name": kernel, "Hostname": Maybe(host), "Container": Maybe(Mark), "Node": Maybe(host), "ExitCode": exit,
	},
	reflect.TypeFor[session.EndImage]():       {"Name": Maybe(Mark), "Ref": Maybe(reference)},
	reflect.TypeFor[session.Cause]():          {"Message": Message, "Hint": Message, "Said": said, "Advice": said},
	reflect.TypeFor[session.FolderMount]():    {"Name": folder, "Path": subPath, "Target": target},
	reflect.TypeFor[session.IdleCheck]():      {"Message": Message, "Metrics": List(16)},
	reflect.TypeFor[session.IdleMetric]():     {"Name": word, "Average": amount, "Threshold": amount},
	reflect.TypeFor[session.IdleSimulation](): {"Message": Message, "Checks": List(16)},
	reflect.TypeFor[session.Phase](): {
		"ID": Mark, "From": Maybe(statusRule()), "To": Maybe(statusRule()), "Attempts": count, "Code": Maybe(code),
		"Message": Message, "Said": said, "Steps": List(mostWarnings),
	},
	reflect.TypeFor[session.Step](): {"Step": word, "Message": Message, "Said": said, "Code": Maybe(code)},
	reflect.TypeFor[session.Terminal](): {
		"ID": Mark, "Title": title, "Kernel": Maybe(kernel), "Cols": OrZero(port), "Rows": OrZero(port),
		"Start": Offset, "End": Offset, "ExitCode": exit,
	},
	reflect.TypeFor[session.App](): {
		"ID": app, "Title": title, "Kind": word, "Port": port, "Path": OrZero(Maybe(address)), "Dir": Line(mostPath),
		"Progress": title, "NotKept": said,
	},
	reflect.TypeFor[session.SSHHost]():    {"Key": key},
	reflect.TypeFor[session.FieldError](): {"Field": title, "Message": Message, "Hint": Message, "Said": said},
	reflect.TypeFor[session.Preview](): {
		"Spec":   Free, // what a person has written, right or wrong: its caller judges it
		"Errors": List(1000), "Warnings": List(1000), "Folders": List(session.MaxFolders),
		"GPUs": List(mostDevices * session.MaxCluster), "Further": List(session.MostLaunches - 1),
		"Sbatch": Message,
	},
	reflect.TypeFor[session.Forecast](): {"GPUs": List(mostDevices * session.MaxCluster)},
	reflect.TypeFor[gpu.Rounding]():     {"Why": Message},
	reflect.TypeFor[session.Event](): {
		"Epoch": Maybe(Mark), "Seq": Free, "Owner": Maybe(Owner), "Usage": List(MostSessions),
	},
	reflect.TypeFor[session.Reset]():      {"Sessions": List(MostSessions)},
	reflect.TypeFor[session.Usage]():      {"CPU": amount, "Pids": count, "GPUs": List(mostDevices)},
	reflect.TypeFor[session.DeviceLoad](): {"Instance": Maybe(uuid), "Util": part},
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

var devices = Tables{Fields: map[reflect.Type]Fields{
	reflect.TypeFor[session.Machine](): {"Agent": Line(64), "Instance": Maybe(Mark), "Warnings": List(mostWarnings)},
	reflect.TypeFor[session.Platform](): {
		"Engine": Maybe(word), "EngineVersion": Line(128), "Version": Line(128), "Hostname": Line(253),
		"OS": Maybe(word), "Arch": Maybe(word), "Lacks": List(mostWarnings),
	},
	reflect.TypeFor[session.SlurmSite](): {
		"Version": Line(128), "Partitions": List(mostOfSlurm), "Accounts": List(mostOfSlurm), "QOS": List(mostOfSlurm),
		"Calls": count,
	},
	reflect.TypeFor[session.SlurmPartition](): {
		"Name": ofSlurm, "Nodes": count, "CPUs": cpu, "GPUs": List(64), "Features": List(mostOfSlurm, ofSlurm),
		"Accounts": List(mostOfSlurm, ofSlurm), "QOS": List(mostOfSlurm, ofSlurm),
	},
	reflect.TypeFor[session.SlurmGPU](): {"Type": ofSlurm, "Count": count, "Shards": count},
	reflect.TypeFor[session.SlurmAccount](): {
		"Name": ofSlurm, "Partition": ofSlurm, "QOS": List(mostOfSlurm, ofSlurm), "DefaultQOS": ofSlurm,
	},
	reflect.TypeFor[session.SlurmQOS](): {"Name": ofSlurm},
	reflect.TypeFor[session.Capacity](): {"CPUs": cpu, "UsedCPUs": count, "Warm": count},
	reflect.TypeFor[session.Caller]():   {"Owner": Maybe(Owner)},
	reflect.TypeFor[session.Load]():     {"CPU": amount},
	reflect.TypeFor[session.Allowance](): {
		"Sessions": count, "CPU": count, "Processes": count, "Folders": List(1000, absolute),
	},
	reflect.TypeFor[session.Check](): {"ID": word, "Title": title, "Text": Message, "Remedy": Message},
	reflect.TypeFor[session.DeviceBoard](): {
		"Source": Maybe(word), "Text": Message, "Strategy": Maybe(word), "Attach": Maybe(word),
		"Devices": List(mostDevices),
	},
	reflect.TypeFor[session.DeviceState](): {},
	reflect.TypeFor[session.DeviceStatus](): {
		"Util": part, "Temperature": Whole(-1000, 10_000), "Holders": List(10_000), "Over": title,
	},
	reflect.TypeFor[session.DeviceHolder](): {
		"Session": Maybe(id), "Name": title, "Owner": title, "PID": count, "Util": part,
	},
	reflect.TypeFor[session.DevicePoint](): {"Util": part, "Temperature": Whole(-1000, 10_000)},
	reflect.TypeFor[session.Account](): {
		"Start": OrZero(Moment), "Session": Maybe(id), "Name": title, "Owner": title, "Label": title,
		"Device": Maybe(uuid), "Kind": word, "CPUMs": Offset, "AllocCPUMs": Offset,
	},
	reflect.TypeFor[session.ServiceAccount](): {
		"Start": OrZero(Moment), "Kind": word, "Service": name, "Owner": Maybe(Owner), "Revision": count,
		"Token": Maybe(Mark), "TokenName": label,
	},
	reflect.TypeFor[session.ServiceUse]():   {},
	reflect.TypeFor[session.Requests]():     {},
	reflect.TypeFor[session.RequestTimes](): {},
	reflect.TypeFor[session.ReplicaUse]():   {"CPUMs": Offset, "AllocCPUMs": Offset},
	reflect.TypeFor[session.RequestCounts](): {
		"Answered": Offset, "Failed": Offset, "Cut": Offset, "Left": Offset, "Refused": Offset, "Limited": Offset,
		"Prompt": Offset, "Completion": Offset, "BytesIn": Offset, "BytesOut": Offset,
	},
	reflect.TypeFor[session.Latency](): {"SumUs": Offset, "Steps": List(session.MostLatencySteps, Offset)},
	reflect.TypeFor[session.DeviceUse](): {
		"AllocGPUMs": Offset, "BusyGPUMs": Offset, "VRAMMiBMs": Offset, "CoveredMs": Offset, "EstimatedMs": Offset,
		"GapMs": Offset,
	},
	reflect.TypeFor[gpu.Device](): {
		"Model": title, "Index": count, "PCI": Maybe(Mark), "Nodes": List(64, absolute), "Instances": List(64),
		"Driver": title,
	},
	reflect.TypeFor[gpu.Instance]():     {"Profile": Maybe(Mark)},
	reflect.TypeFor[gpu.Capabilities](): {},
	reflect.TypeFor[gpu.Probe]():        {"Why": Message},
	reflect.TypeFor[gpu.Loss]():         {"Why": Message},
	// The log also has refused requests, whatever they asked for.
	reflect.TypeFor[session.AuditEntry](): {
		"Owner": title, "Role": title, "Client": title, "From": title, "Method": title, "Session": title,
		"Target": title, "Outcome": title, "Count": count,
	},
	reflect.TypeFor[session.PairedClient](): {"Key": Mark, "Name": title, "Owner": Maybe(Owner), "Live": count},
}}

var images = Tables{
	Types: map[reflect.Type]Rule{
		reflect.TypeFor[session.ImageWork](): Together(func(w *session.ImageWork) string {
			if w.State == session.WorkFailed && w.Error == nil {
				return "it failed and does not say why"
			}
			return ""
		}),
		reflect.TypeFor[map[string]string](): Each(labels),
	},
	Fields: map[reflect.Type]Fields{
		reflect.TypeFor[session.Image](): {
			"ID": imageID, "Refs": GoodOf(1000, reference), "Digests": GoodOf(1000, reference), "Arch": title,
			"Origin": OrNone(), "CreatedAt": OrZero(Moment), "UsedBy": List(MostSessions), "Owners": List(1000, Owner),
		},
		// An origin is read from labels, which anybody can write: see OrNone.
		reflect.TypeFor[session.ImageOrigin](): {
			"Name": Mark, "Owner": Maybe(Owner), "Instance": Maybe(Mark), "Session": Maybe(id),
			"SessionName": Maybe(name), "Base": Maybe(reference), "Series": Maybe(name),
		},
		reflect.TypeFor[session.ImageUser](): {"Name": name, "Owner": Maybe(Owner)},
		reflect.TypeFor[session.ImageWork](): {
			"ID": Mark, "Ref": Maybe(reference), "Owner": Maybe(Owner), "Session": Maybe(id), "Revision": Free,
		},
		reflect.TypeFor[session.Build](): {
			"Steps": List(session.MaxBuildSteps), "Log": Prose(int(session.MaxBuildLog)),
		},
		reflect.TypeFor[session.BuildStep](): {"Name": Line(1000)},
		reflect.TypeFor[session.Project](): {
			"File": Line(mostPath), "Files": List(100, Line(mostPath)), "Image": Maybe(reference),
			"Dockerfile": Message, "Bases": List(1000, reference), "Secrets": List(session.MaxEnv, variable),
			"Left": List(1000),
		},
		reflect.TypeFor[session.ProjectNeeds](): {
			"Setup": Bytes(128 << 10), "Env": List(session.MaxEnv), "Ports": List(session.MaxPorts, port),
			"Mounts": List(session.MaxMounts),
		},
		reflect.TypeFor[session.ProjectLeft]():   {"What": title},
		reflect.TypeFor[session.CloneNews]():     {"Line": title},
		reflect.TypeFor[session.CloneQuestion](): {"Text": title},
		reflect.TypeFor[session.ImageDisk]():     {"Images": List(MostSessions)},
		reflect.TypeFor[session.ImageRoom]():     {"Containers": count},
		reflect.TypeFor[session.ImageParts](): {
			"ID": imageID, "Refs": GoodOf(1000, reference), "Arch": title, "OS": title, "Layers": List(mostLayers),
		},
		reflect.TypeFor[session.ImageLayer](): {"Digest": digest},
		reflect.TypeFor[session.ImageArrival](): {
			"ID": imageID, "Missing": List(mostLayers + 1), "Present": Whole(0, mostLayers),
		},
		reflect.TypeFor[session.PartMark](): {
			"Part": Text("a part of an image", func(text string) bool {
				return text == session.ImageConfig || isDigest(text)
			}),
		},
	},
}

// labels cleans the labels of an image, which anybody can write.
func labels(of *map[string]string) string {
	const most = 10_000
	if len(*of) > most {
		return "there are too many labels"
	}
	for name, value := range *of {
		switch {
		case !still(name, mostTitle):
			delete(*of, name)
		case !plain(value, mostText):
			(*of)[name] = clean(value, mostText, true)
		}
	}
	return ""
}

// places are the rules of files and folders. Names of files may have any bytes, so they are escaped where they are
// printed, but they never lead to another directory. Names of directories that are not a [session.FilePath] are only
// displayed, so they are cleaned.
var places = Tables{Fields: map[reflect.Type]Fields{
	reflect.TypeFor[session.FileInfo](): {"Name": fileName, "Target": Maybe(linkTarget), "Size": size, "Mode": Free,
		"Modified": OrZero(Moment), "Version": Maybe(Mark)},
	reflect.TypeFor[session.FileListing](): {"Path": filePath, "Entries": List(session.MaxListed), "Total": count},
	reflect.TypeFor[session.DirectoryListing](): {
		"Path": Both(directory, Line(mostPath)), "Parent": Maybe(Both(directory, Line(mostPath))),
		"Entries": List(session.MaxListed),
	},
	reflect.TypeFor[session.DirectoryEntry](): {"Name": Both(fileName, Line(mostPath))},
	reflect.TypeFor[session.Folder](): {
		"Name": folder, "Owner": Maybe(Owner), "Agent": Line(64), "Problem": Message, "UsedBy": List(MostSessions),
	},
	reflect.TypeFor[session.FolderOrigin]():  {"Path": Maybe(absolute), "Inode": Free},
	reflect.TypeFor[session.FolderHome]():    {"Name": name},
	reflect.TypeFor[session.FolderUsage]():   {"Files": count},
	reflect.TypeFor[session.FolderRemoval](): {"Files": count, "OfFiles": count},
	reflect.TypeFor[session.FolderUser]():    {"Name": name, "Owner": Maybe(Owner)},
}}

var (
	// fileName is "/" of the root.
	fileName = Text("the name of a file", func(text string) bool {
		return text == "/" || len(text) <= mostPath && text != "" && text != "." && text != ".." &&
			!strings.ContainsAny(text, "/\x00")
	})
	// linkTarget may lead anywhere, because it is only stored and displayed.
	linkTarget = Text("the target of a link", func(text string) bool {
		return len(text) <= mostPath && strings.IndexByte(text, 0) < 0
	})
	filePath = Text("an absolute path", func(text string) bool {
		return strings.HasPrefix(text, "/") && path.Clean(text) == text && len(text) <= mostPath &&
			strings.IndexByte(text, 0) < 0
	})
	// directory is a path of any operating system.
	directory = Text("the path of a directory", func(text string) bool {
		return text != "" && len(text) <= mostPath && strings.IndexByte(text, 0) < 0 && !upward(text)
	})
)
