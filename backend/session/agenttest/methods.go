package agenttest

import (
	"reflect"
	"slices"

	"slipway/backend/session"
)

// Methods returns the methods of an agent, as the interfaces of its parts declare them, except those of its admins.
func Methods() (all []reflect.Method) {
	for part := range reflect.TypeFor[session.Agent]().Fields() {
		if part.Anonymous {
			all = slices.AppendSeq(all, part.Type.Methods())
		}
	}
	return all
}
