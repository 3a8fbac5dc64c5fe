package vet

import (
	"reflect"

	"slipway/backend/session"
	"slipway/gpu"
)

// devices are the rules of what tells of machines and their devices.
var devices = Tables{Fields: map[reflect.Type]Fields{
	reflect.TypeFor[session.Machine](): {
		"Agent": Line(64), "Instance": Maybe(Mark), "Warnings": List(mostWarnings),
	},
	reflect.TypeFor[session.Platform](): {
		"Engine": Maybe(word), "EngineVersion": Line(128), "Version": Line(128), "Hostname": Line(253),
		"OS": Maybe(word), "Arch": Maybe(word),
	},
	reflect.TypeFor[session.Capacity](): {"CPUs": cpu, "UsedCPUs": count},
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
		"Start":   OrZero(Moment),
		"Session": Maybe(id), "Name": title, "Owner": title, "Label": title, "Device": Maybe(uuid), "Kind": word,
		"CPUMs": Offset, "AllocCPUMs": Offset,
	},
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
	// The log tells of what was refused as well, whatever was asked for.
	reflect.TypeFor[session.AuditEntry](): {
		"Owner": title, "Role": title, "Client": title, "From": title, "Method": title, "Session": title,
		"Target": title, "Outcome": title, "Count": count,
	},
	reflect.TypeFor[session.PairedClient](): {"Key": Mark, "Name": title, "Owner": Maybe(Owner), "Live": count},
}}
