package tunnel

// The codes of faults. They are among those that backend/session declares and explains, which this package cannot
// import.
const (
	CodeUnreachable    = "agent_connect_unavailable"
	CodeConnectAuth    = "agent_connect_auth"
	CodeConnectAsks    = "agent_connect_asks"
	CodeConnectHostKey = "agent_connect_host-key"
	CodeNotPaired      = "agent_connect_not-paired"
	CodeConnectVersion = "agent_connect_version"
	CodeConnectInvalid = "agent_connect_invalid"
	CodePairCode       = "agent_pair_wrong-code"
	CodePairExpired    = "agent_pair_expired"
	CodePairRefused    = "agent_pair_refused"
	CodeInstallFailed  = "agent_install_failed"
	CodeDiskFull       = "disk_write_no-space"
)
