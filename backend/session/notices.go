package session

// The codes of reasons to wait, of ends of sessions and of warnings; [Notices]
// explains them.
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

// Notices is the table of the codes that are no errors of a call: why a session
// waits, why it ended, and what is worth knowing about it or its machine.
var Notices = []Class{
	{CodeWaitResources, 0, "It needs resources that others have.", "Wait, ask for less, or choose another machine."},
	{CodeWaitTurn, 0, "It would take what a session ahead of it in the queue needs.", "Wait, or raise its priority."},
	{CodeWaitStart, 0, "Its start time has not come.", "Wait, or launch it without a start time."},
	{CodeWaitDependency, 0, "Sessions that it depends on have not ended.", "Wait for them to succeed."},
	{CodeWaitMachine, 0, "The machine is smaller than it needs.", "Ask for less, or choose another machine."},
	{CodeWaitSettle, 0, "What it needs was freed a moment ago and is being checked.", "Wait a few seconds."},
	{CodeWaitDriver, 0, "The driver says that a device is used by other programs.",
		"End the programs that are named, or wait for them."},
	{CodeWaitBooks, 0, "The resources it would get are already allocated.",
		"This is an error in Slipway; report it with its log."},
	{CodeWaitLimit, 0, "Its owner has as much as allowed.", "End a session, or ask an admin for a higher limit."},

	{CodeExpired, 0, "It waited longer than its limit.", "Launch it again with a longer limit, or ask for less."},
	{CodeDependencyFailed, 0, "A session that it depends on failed.", "Check why it failed, then launch both again."},
	{CodeImageForbidden, 0, "The owner may not use the image.", "Choose another image, or ask an admin."},
	{CodeNoShell, 0, "The image has no shell to run the startup command.", "Choose an image with a shell."},
	{CodeContainerLost, 0, "The container of the session disappeared.", "Launch the session again."},
	{CodeEngineStopped, 0, "The container engine was stopped.",
		"Launch the session again; live-restore keeps containers running."},
	{CodeExited, 0, "The session ended with an exit code.", "Read its log."},
	{CodeKernelEnded, 0, "One container of the session ended.", "Read the log of that container."},
	{CodeMachineRestarted, 0, "The machine was restarted.", "Launch the session again."},
	{CodeOOM, 0, "A program used more memory than the session has.", "Launch the session with more memory."},
	{CodeReclaimed, 0, "The session was idle, or reached its maximum lifetime.",
		"Launch it again, with longer idle limits if necessary."},
	{CodeRunFailed, 0, "The session ended without an exit code of its command.",
		"slipway history shows what happened."},
	{CodeTaskFailed, 0, "The startup command failed.", "Read the session's log."},
	{CodeRunTimeout, 0, "The session reached its time limit.", "Launch it again with a longer limit."},
	{CodeMemoryOver, 0, "The session uses more GPU memory than allocated.",
		"Reduce its use, or launch it with a larger share."},

	{CodeLockHeld, 0, "Another Slipway holds the lock of the devices.",
		"Nothing to do: devices are checked again after each start."},
	{CodePlanRefused, 0, "The books refused a placement.", "This is an error in Slipway; report it with its log."},
	{CodeSimulated, 0, "Sessions are simulated, because Docker cannot be used.", "slipway doctor shows why."},
	{CodeNotApart, 0, "Networks of sessions are not isolated from one another.", "Follow slipway doctor."},
	{CodeNoFilter, 0, "Docker does not filter the traffic between sessions.", "Follow slipway doctor."},
	{CodeNoLimits, 0, "The engine cannot limit memory or CPU sets.", "Follow slipway doctor."},
	{CodeNoProcessLimit, 0, "The engine cannot limit processes.", "Follow slipway doctor."},
	{CodeNotLinux, 0, "The engine runs no Linux containers.", "Switch Docker Desktop to Linux containers."},
	{CodeRemoteEngine, 0, "The engine runs on another machine.", "Run a Slipway agent on that machine."},
	{CodeTooOld, 0, "The engine is too old.", "Upgrade Docker."},
	{CodeAdopted, 0, "A running session was adopted without a record.", "Check its settings; some are unknown."},
	{CodeIdleLifetime, 0, "The session is about to reach its maximum lifetime.",
		"Keep it for some hours, or save your work."},
	{CodeIdleNetwork, 0, "The session has been idle and is about to be reclaimed.",
		"Use it, or keep it for some hours."},
	{CodeIdleUtilization, 0, "The session uses little of its resources and is about to be reclaimed.",
		"Use it, or keep it for some hours."},
	{CodeDeviceBack, 0, "A lost device is available again.", "Restart the programs that used it."},
	{CodeDeviceLost, 0, "A device of the session is lost.", "Save what can be saved."},
	{CodeMemoryNear, 0, "GPU memory of the session is almost full.", "Reduce its use of GPU memory."},
	{CodeProcessLimit, 0, "The session reached its limit of processes.", "End programs in the session."},
	{CodeNoHome, 0, "The home of the session could not be prepared.", "Check that the engine's disk is not full."},
	{CodeNoSSH, 0, "The containers of the session cannot reach one another by ssh.", "Start the session again."},
	{CodeNoUser, 0, "The user could not be entered into the image's user files.",
		"Programs that look up their user's name may complain."},
	{CodeUncooperative, 0, "PyTorch does not know the session's share of a device.",
		"Call torch.cuda.set_per_process_memory_fraction with SLIPWAY_GPU_FRACTION."},
	{CodeLeftBehind, 0, "Something of the session could not be removed.",
		"Nothing to do: Slipway keeps trying while it runs."},
	{CodeLogLost, 0, "The log of the session is incomplete.", "Check the disk of the machine."},
}
