package place

// Version and Commit are set by the linker: -ldflags
// "-X slipway/backend/place.Version=… -X slipway/backend/place.Commit=…".
var (
	Version = "dev"
	Commit  = "unknown"
)
