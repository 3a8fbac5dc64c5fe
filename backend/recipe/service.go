package recipe

import "slipway/backend/session"

// Service is the recipe of a service: what it runs and how many of it. It has no tokens.
type Service struct {
	Name string `json:"name"`
	session.ServiceWish
	Spec session.Spec `json:"spec"` // of each replica, with its Serving
}

// ParseService parses the recipe of a service as [Parse] does that of a session.
func ParseService(data []byte) (service Service, err error) {
	if err = parse(data, &service); err == nil && service.Spec.Serving == nil {
		err = &Fault{Message: "this is not the recipe of a service: it has no spec with serving.",
			Hint: "Launch the recipe of a session with slipway run -f."}
	}
	return service, err
}

// WriteService returns a recipe that [ParseService] reads as the same service, as [Write] does. What the machine sets
// is left out.
func WriteService(service Service, notes ...string) []byte {
	spec := &service.Spec
	spec.Type, spec.Name = "", ""
	if spec.Serving != nil {
		serving := *spec.Serving
		serving.Service, serving.Revision = "", 0
		spec.Serving = &serving
	}
	return write(service, append([]string{"A service of Slipway. Deploy it with: slipway service create -f FILE"},
		notes...))
}
