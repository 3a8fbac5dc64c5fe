package session

import "cmp"

// Code names a failure, a reason or a warning as domain_operation_detail, for example "session_create_already-exists";
// the message describes the case. Programs decide by code, never by text; codes cross HTTP and the tunnel unchanged.
// All are declared here and explained in build/docs/errors.md. Codes of older versions may come from stored records and
// older agents, and count by their detail.
type Code string

// statuses are the HTTP statuses by detail, and of codes with another one. All others are 409.
var statuses = map[Code]int{
	DetailInvalid: 422, DetailNotFound: 404, DetailForbidden: 403, DetailUnavailable: 503, DetailTimeout: 504,
	DetailInternal: 500, "exited": 502, "too-large": 413, "required": 401, "no-space": 507,
	CodeRequestInvalid: 400, CodeWrongMethod: 405, CodeServerAnswer: 502, CodeRequestCancelled: 503,
}

// Status is the HTTP status of an error of this code.
func (c Code) Status() int { return cmp.Or(statuses[c], statuses[Code(c.Detail())], 409) }

// The codes of errors.
const (
	CodeAgentNotFound    Code = "agent_find_not-found"
	CodeAgentUnavailable Code = "agent_call_unavailable"
	CodeAgentTimeout     Code = "agent_call_timeout"
	CodeAgentBusy        Code = "agent_call_busy"
	CodeAgentConflict    Code = "agent_call_conflict"
	CodeAgentForbidden   Code = "agent_call_forbidden"
	CodeAgentInvalid     Code = "agent_call_invalid"
	CodeAgentInternal    Code = "agent_call_internal-error"
	CodeAgentUnsupported Code = "agent_call_unsupported"
	CodeAgentBroken      Code = "agent_stream_broken"
	CodeAgentReply       Code = "agent_reply_invalid"
	CodeUnreachable      Code = "agent_connect_unavailable"
	CodeConnectAuth      Code = "agent_connect_auth"
	CodeConnectAsks      Code = "agent_connect_asks"
	CodeConnectHostKey   Code = "agent_connect_host-key"
	CodeNotPaired        Code = "agent_connect_not-paired"
	CodeConnectVersion   Code = "agent_connect_version"
	CodeConnectInvalid   Code = "agent_connect_invalid"
	CodeConnectForbidden Code = "agent_connect_forbidden"
	CodePairCode         Code = "agent_pair_wrong-code"
	CodePairExpired      Code = "agent_pair_expired"
	CodePairRefused      Code = "agent_pair_refused"
	CodePairUnavailable  Code = "agent_pair_unavailable"
	CodeInstallFailed    Code = "agent_install_failed"

	CodeAppNotFound     Code = "app_open_not-found"
	CodeAppConflict     Code = "app_open_conflict"
	CodeAppUnavailable  Code = "app_open_unavailable"
	CodeAppNotInstalled Code = "app_start_not-installed"
	CodeAppExited       Code = "app_start_exited"
	CodeAppTimeout      Code = "app_start_timeout"

	CodeUsage         Code = "cli_usage_invalid"
	CodeCommandFailed Code = "cli_command_failed"

	CodeDeviceNotFound Code = "device_read_not-found"

	CodeDiskFull Code = "disk_write_no-space"

	CodeEngineUnavailable Code = "engine_connect_unavailable"
	CodeEngineTimeout     Code = "engine_call_timeout"
	CodeEngineConflict    Code = "engine_call_conflict"
	CodeEngineInvalid     Code = "engine_call_invalid"
	CodeEngineInternal    Code = "engine_call_internal-error"
	CodeNoContainer       Code = "engine_read_not-found"
	CodeNoImage           Code = "engine_image_not-found"
	CodeEngineUnsupported Code = "engine_create_unsupported"
	CodeDevicesTaken      Code = "engine_create_devices-taken"
	CodeAttachFailed      Code = "engine_attach_failed"
	CodeGuestExited       Code = "engine_guest_exited"
	CodeStartFailed       Code = "engine_start_failed"
	CodePullNotFound      Code = "engine_pull_not-found"
	CodePullForbidden     Code = "engine_pull_forbidden"
	CodePullUnavailable   Code = "engine_pull_unavailable"

	CodeFileExists    Code = "file_use_already-exists"
	CodeFileConflict  Code = "file_use_conflict"
	CodeFileChanged   Code = "file_use_changed"
	CodeFileFailed    Code = "file_use_failed"
	CodeFileForbidden Code = "file_use_forbidden"
	CodeFileInvalid   Code = "file_use_invalid"
	CodeFileNotFound  Code = "file_use_not-found"

	CodeFolderNotFound  Code = "folder_read_not-found"
	CodeServiceNotFound Code = "service_read_not-found"
	CodeFolderExists    Code = "folder_create_already-exists"
	CodeFolderConflict  Code = "folder_update_conflict"
	CodeFolderChanged   Code = "folder_open_changed"

	CodeGuestInvalid  Code = "guest_call_invalid"
	CodeGuestInternal Code = "guest_call_internal-error"
	CodeGuestVersion  Code = "guest_connect_version"

	CodeBuildFailed     Code = "image_build_failed"
	CodeImageExists     Code = "image_commit_already-exists"
	CodeImageConflict   Code = "image_update_conflict"
	CodeImageInvalid    Code = "image_update_invalid"
	CodeImageCorrupt    Code = "image_receive_corrupt"
	CodeImageUnexpected Code = "image_receive_not-found"
	CodeImageReplaced   Code = "image_receive_replaced"

	CodeOperationNotFound  Code = "operation_read_not-found"
	CodeOperationConflict  Code = "operation_answer_conflict"
	CodeOperationCancelled Code = "operation_run_cancelled"
	CodeOperationFailed    Code = "operation_run_failed"
	CodeOperationTimeout   Code = "operation_run_timeout"

	CodeProcessNotFound  Code = "process_start_not-found"
	CodeProcessForbidden Code = "process_start_forbidden"

	CodeRecipeInvalid  Code = "recipe_parse_invalid"
	CodeRecipeNotFound Code = "recipe_read_not-found"

	CodeRequestInvalid   Code = "request_decode_invalid"
	CodeTooLarge         Code = "request_decode_too-large"
	CodeNoRoute          Code = "request_route_not-found"
	CodeWrongMethod      Code = "request_route_unsupported"
	CodeLoginRequired    Code = "request_login_required"
	CodeOriginForbidden  Code = "request_origin_forbidden"
	CodeRequestCancelled Code = "request_wait_cancelled"

	CodeServerInternal    Code = "server_request_internal-error"
	CodeServerUnavailable Code = "server_request_unavailable"
	CodeServerAnswer      Code = "server_answer_invalid"
	CodeServerUnreachable Code = "server_connect_unavailable"
	CodeListenConflict    Code = "server_listen_conflict"
	CodeStartConflict     Code = "server_start_conflict"
	CodeServerFailed      Code = "server_start_failed"
	CodeServerInvalid     Code = "server_start_invalid"

	CodeInvalid            Code = "session_create_invalid"
	CodeNameTaken          Code = "session_create_already-exists"
	CodeMountForbidden     Code = "session_create_forbidden"
	CodeTooManySessions    Code = "session_create_too-many"
	CodeSessionNotFound    Code = "session_read_not-found"
	CodeSessionAmbiguous   Code = "session_read_ambiguous"
	CodeSessionConflict    Code = "session_update_conflict"
	CodeSessionInvalid     Code = "session_update_invalid"
	CodeUseNotFound        Code = "session_use_not-found"
	CodeUseTooMany         Code = "session_use_too-many"
	CodeSessionUnavailable Code = "session_use_unavailable"
	CodeStepFailed         Code = "session_step_failed"

	CodeSettingsBroken   Code = "settings_read_invalid"
	CodeSettingsInvalid  Code = "settings_update_invalid"
	CodeSettingsConflict Code = "settings_update_conflict"
	CodeSettingsFailed   Code = "settings_update_failed"

	CodeSSHConflict Code = "ssh_open_conflict"
	CodeSSHFailed   Code = "ssh_setup_failed"
	CodeSSHInvalid  Code = "ssh_open_invalid"

	CodeStoreFailed     Code = "store_open_failed"
	CodeStoreLocked     Code = "store_open_locked"
	CodeStoreRead       Code = "store_read_failed"
	CodeStoreConflict   Code = "store_write_conflict"
	CodeStoreWrite      Code = "store_write_failed"
	CodeStoreTransition Code = "store_write_transition"
)

// The codes of reasons to wait, of ends of sessions and of warnings.
const (
	// reasons to wait
	CodeWaitResources  Code = "scheduler_wait_resources"
	CodeWaitTurn       Code = "scheduler_wait_turn"
	CodeWaitStart      Code = "scheduler_wait_start"
	CodeWaitDependency Code = "scheduler_wait_dependency"
	CodeWaitMachine    Code = "scheduler_wait_machine"
	CodeWaitSettle     Code = "scheduler_wait_settle"
	CodeWaitDriver     Code = "scheduler_wait_driver"
	CodeWaitBooks      Code = "scheduler_wait_books"
	CodeWaitLimit      Code = "scheduler_wait_limit"

	// ends
	CodeExpired          Code = "scheduler_pending_timeout"
	CodeDependencyFailed Code = "scheduler_dependency_failed"
	CodeImageForbidden   Code = "session_start_forbidden"
	CodeNoShell          Code = "session_start_no-shell"
	CodeContainerLost    Code = "session_run_container-lost"
	CodeEngineStopped    Code = "session_run_engine-stopped"
	CodeExited           Code = "session_run_exited"
	CodeKernelEnded      Code = "session_run_kernel-ended"
	CodeMachineRestarted Code = "session_run_machine-restarted"
	CodeOOM              Code = "session_run_oom-killed"
	CodePreempted        Code = "session_run_preempted"
	CodeReclaimed        Code = "session_run_reclaimed"
	CodeRunFailed        Code = "session_run_failed"
	CodeTaskFailed       Code = "session_run_task-failed"
	CodeRunTimeout       Code = "session_run_timeout"
	CodeMemoryOver       Code = "session_run_device-memory-over"

	// warnings
	CodeLockHeld        Code = "agent_devices_lock-held"
	CodePlanRefused     Code = "agent_plan_refused"
	CodeSimulated       Code = "engine_choose_sim"
	CodeNotApart        Code = "engine_info_not-apart"
	CodeNoFilter        Code = "engine_info_no-filter"
	CodeNoLimits        Code = "engine_info_no-limits"
	CodeNoProcessLimit  Code = "engine_info_no-process-limit"
	CodeNotLinux        Code = "engine_info_not-linux"
	CodeRemoteEngine    Code = "engine_info_remote-engine"
	CodeTooOld          Code = "engine_info_too-old"
	CodeAdopted         Code = "session_adopt_no-record"
	CodeIdleLifetime    Code = "session_idle_lifetime"
	CodeIdleNetwork     Code = "session_idle_network"
	CodeIdleLimit       Code = "session_idle_time-limit"
	CodeIdleUtilization Code = "session_idle_utilization"
	CodeDeviceBack      Code = "session_run_device-back"
	CodeDeviceLost      Code = "session_run_device-lost"
	CodeMemoryNear      Code = "session_run_device-memory-near"
	CodeProcessLimit    Code = "session_run_process-limit"
	CodeNoHome          Code = "session_start_no-home"
	CodeNoSSH           Code = "session_start_no-ssh"
	CodeNoUser          Code = "session_start_no-user"
	CodeUncooperative   Code = "session_start_uncooperative"
	CodeLeftBehind      Code = "session_terminate_left-behind"
	CodeLogLost         Code = "session_terminate_log-lost"
)
