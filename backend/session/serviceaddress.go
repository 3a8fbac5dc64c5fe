package session

// ServiceAddress is where clients reach the services of a machine, apart from the computers that are connected to it.
type ServiceAddress struct {
	From  AddressFrom `json:"from"`
	URL   string      `json:"url,omitempty"`   // base of the OpenAI-compatible API; empty: it is not open
	Fault string      `json:"fault,omitempty"` // why it is not open
	// PEM of the certificate that clients have to trust, if the machine made it itself
	Certificate string `json:"certificate,omitempty"`
}

// AddressFrom says who can use an address.
type AddressFrom string

// Who can use an address.
const (
	FromMachine AddressFrom = "machine" // programs on the machine
	FromNetwork AddressFrom = "network" // other computers, with TLS
)

// NetworkListener is where a machine lets other computers use its services.
type NetworkListener struct {
	Address     string // host:port; empty: nowhere
	Certificate string // path of a PEM file with it and those that lead to it; empty: the machine makes one
	Key         string // path of a PEM file with its key; empty: that of Certificate
}
