package nvml

import (
	"encoding/json"
	"io"

	"slipway/gpu"
)

// Parent and child speak in JSON, one value after the other: the parent sends requests, the child answers.

// maxMessage limits one message, in bytes.
const maxMessage = 16 << 20

// messages reads the values of one side. The error is io.EOF at their end.
func messages(from io.Reader) (next func(message any) error) {
	limited := &io.LimitedReader{R: from}
	decoder := json.NewDecoder(limited)
	return func(message any) error {
		limited.N = maxMessage
		return decoder.Decode(message)
	}
}

// The operations of a request.
const (
	opInventory = "inventory"
	opSample    = "sample"
)

type request struct {
	ID    uint64            `json:"id"`
	Op    string            `json:"op"`
	Last  map[string]uint64 `json:"last,omitempty"`  // per device, the driver's time up to which its buffers were read
	Since uint64            `json:"since,omitempty"` // the same for devices that Last lacks
	Omit  []omission        `json:"omit,omitempty"`
}

// omission is a call that the child must not make: without Device on none, without Call none at all on the device.
type omission struct {
	Device string `json:"device,omitempty"` // a UUID, or "#0" for an index
	Call   string `json:"call,omitempty"`
}

type answer struct {
	ID        uint64        `json:"id,omitempty"`
	Fault     *fault        `json:"fault,omitempty"` // nothing could be read at all
	Inventory []deviceFacts `json:"inventory,omitempty"`
	Reading   *reading      `json:"reading,omitempty"`
	Lost      []loss        `json:"lost,omitempty"`
}

type fault struct {
	Call string `json:"call,omitempty"`
	Code int    `json:"code"`           // as the library says, or one of the codes below
	Text string `json:"text,omitempty"` // what the loader said
}

// Those of the library's codes that mean something here.
const (
	codeNotSupported = 3
	codeNoPermission = 4
	codeNotFound     = 6
	codeNotLoaded    = 9
	codeLost         = 15
	codeReset        = 16
	codeMismatch     = 18
	codeNoDevice     = 28
)

// Codes beside those of the library.
const (
	codeMissing  = -1 // the library has no such function
	codePanicked = -2 // go-nvml failed on what the library answered
	codeOmitted  = -3 // the parent asked to leave it out
	codeNoCgo    = -4 // this program was built without C
	codeNoFile   = -5 // the library could not be loaded
	codeNonsense = -6 // the answer cannot be true
)

// loss is one thing that could not be read.
type loss struct {
	Device string `json:"device,omitempty"`
	Call   string `json:"call"`
	Code   int    `json:"code"`
}

// deviceFacts is what does not change about a device while it is there.
type deviceFacts struct {
	UUID      string          `json:"uuid"`
	Index     int             `json:"index"`
	Name      string          `json:"name"`
	PCI       string          `json:"pci"`
	Total     uint64          `json:"total"`
	Reserved  uint64          `json:"reserved"`
	Driver    string          `json:"driver"`
	MIG       bool            `json:"mig"`
	Instances []instanceFacts `json:"instances,omitempty"`
	Major     int             `json:"major"`  // of the compute capability; 0: unknown
	Probes    map[string]int  `json:"probes"` // what each call answered, by its name
	Accounts  bool            `json:"accounts"`
}

type instanceFacts struct {
	UUID  string `json:"uuid"`
	Name  string `json:"name"`
	Total uint64 `json:"total"`
}

// reading is what changes, as the library reported it: nothing is corrected yet.
type reading struct {
	Driver  string          `json:"driver"`
	Devices []deviceReading `json:"devices"`
}

type deviceReading struct {
	UUID        string  `json:"uuid"`
	MIG         bool    `json:"mig,omitempty"`
	Used        *uint64 `json:"used,omitempty"`
	Free        *uint64 `json:"free,omitempty"`
	Rate        *uint32 `json:"rate,omitempty"` // percent, over a period that the driver chooses
	Power       *uint64 `json:"power,omitempty"`
	PowerLimit  *uint64 `json:"powerLimit,omitempty"`
	Energy      *uint64 `json:"energy,omitempty"`
	Temperature *uint32 `json:"temperature,omitempty"`
	Ticks       []tick  `json:"ticks,omitempty"` // utilisation of the device
	processesReading
	Instances []instanceReading `json:"instances,omitempty"` // of a divided device
}

type processesReading struct {
	Rows      []row         `json:"rows,omitempty"` // their utilisation
	RowsCode  int           `json:"rowsCode"`
	Processes []processInfo `json:"processes,omitempty"`
	Listed    bool          `json:"listed"`          // whether Processes is all there is
	Ended     *[]endedInfo  `json:"ended,omitempty"` // records of ended processes; nil: none are kept
}

type instanceReading struct {
	UUID string    `json:"uuid"`
	Busy *int      `json:"busy,omitempty"` // since its last reading, in hundredths of a percent of the instance
	Part gpu.Share `json:"-"`              // of the device, as the inventory has it; 0: not known
}

type endedInfo struct {
	PID   uint32 `json:"pid"`
	Start uint64 `json:"start"` // microseconds of the driver's clock
	Time  uint64 `json:"time"`  // milliseconds that it was on the device
	Util  uint32 `json:"util"`  // percent of them in which it kept the device busy, rounded down
	Peak  uint64 `json:"peak"`  // bytes
}

// tick is one sample of the driver's buffer: At in microseconds of the wall clock, Value in percent.
type tick struct {
	At    uint64 `json:"at"`
	Value uint64 `json:"value"`
}

type row struct {
	PID uint32 `json:"pid"`
	At  uint64 `json:"at"`
	SM  uint32 `json:"sm"`
}

type processInfo struct {
	PID      uint32 `json:"pid"`
	Memory   uint64 `json:"memory"` // notAvailable: unknown
	Instance string `json:"instance,omitempty"`
}

// notAvailable is the library's value for an unknown amount, as on WSL and for users without rights.
const notAvailable = 1<<64 - 1
