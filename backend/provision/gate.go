package provision

import (
	"encoding/json"
	"fmt"
	"reflect"
	"sync"

	"slipway/backend/daemon"
	"slipway/backend/session"
	"slipway/backend/vet"
)

// gate checks the output of agent commands on other machines.
var gate = sync.OnceValue(func() *vet.Gate { return vet.New(answers) })

var answers = vet.Tables{
	Fields: map[reflect.Type]vet.Fields{
		reflect.TypeFor[session.PairCode](): {"Code": vet.Mark, "Address": vet.Mark, "Key": vet.Maybe(vet.Mark)},
		reflect.TypeFor[session.KeyRotation](): {"Before": vet.Maybe(vet.Mark), "Key": vet.Mark,
			"Clients": vet.Whole(0, 1<<20)},
		reflect.TypeFor[daemon.Status](): {
			"Role": vet.Maybe(vet.Mark), "PID": vet.Whole(0, 1<<31), "Version": vet.Line(128),
			"Commit": vet.Line(128),
			"Engine": vet.Maybe(vet.Mark), "Program": vet.Line(4096), "SHA256": vet.Maybe(vet.Checksum),
			"Live": vet.Whole(0, 1<<31),
			"Home": vet.Line(4096), "Listen": vet.Maybe(vet.Mark), "Key": vet.Maybe(vet.Mark),
			"Keeper":   vet.Maybe(vet.Mark),
			"Instance": vet.Maybe(vet.Mark),
		},
		reflect.TypeFor[daemon.Switched]():    {},
		reflect.TypeFor[daemon.Uninstalled](): {"Live": vet.Whole(0, 1<<31), "Kept": vet.List(1000, vet.Line(4096))},
	},
}

// read decodes and checks the output of a command into what into points to, unless nil.
func read(raw []byte, into any) error {
	if into == nil {
		return nil
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return session.WrapError(err, session.CodeInstallFailed, "What the program answered there cannot be read.",
			"Look at what the login shell prints when nobody is at a terminal.")
	}
	if err := gate().Check(into); err != nil {
		return session.WrapError(err, session.CodeAgentReply,
			fmt.Sprintf("The machine answered with invalid data: %v.", err),
			"The data is not used. Upgrade Slipway on both machines. If it happens again, ask whoever runs "+
				"that machine.")
	}
	return nil
}
